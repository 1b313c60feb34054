use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a request is not served, in the form that clients of the OpenAI interface read. It never repeats the bytes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    kind: &'static str,
    /// The field that is wrong, if one is.
    field: Option<&'static str>,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, field: None, message: message.into() }
    }

    /// A request that cannot be served as it is: 400.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field whose value cannot be served: 400.
    pub(crate) fn field(field: &'static str, message: impl std::fmt::Display) -> Self {
        Self { field: Some(field), ..Self::request(format!("`{field}`: {message}")) }
    }

    /// Another status of the caller's making.
    pub(crate) fn status(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", message)
    }

    /// As many requests wait as may: 429.
    pub(crate) fn busy(waiting: usize) -> Self {
        let message = format!("the queue of {waiting} choices has no room for this request; ask again in a moment");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
    }

    /// A fault of the model or the server: 500.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// The document.
    pub(crate) fn document(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.field, "code": null}})
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.document())).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
