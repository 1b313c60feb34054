//! Accepting connections, and the limits on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::ServerError;
use crate::routes::House;

/// Connections at a time; more wait until one ends.
const MOST_CONNECTIONS: usize = 256;
/// The headers of a request must have come after so long.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// Bytes of headers that are read at most.
const HEADER_BYTES: usize = 64 << 10;
/// How soon the wish to stop is seen.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(100);

/// Serves until `stop` is set.
pub(crate) fn serve(house: &House, address: SocketAddr, stop: &AtomicBool, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let listen = |source| ServerError::Listen { address, source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServerError::Thread)?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        ready(listener.local_addr().map_err(listen)?);
        let accepting = accept(listener, house.clone());
        tokio::pin!(accepting);
        while !stop.load(Ordering::SeqCst) {
            // Accepting never ends by itself; the time-out only looks at the flag.
            let _ = tokio::time::timeout(STOP_SEEN_AFTER, &mut accepting).await;
        }
        house.stop();
        Ok(())
    });
    // Every connection ends here; a long text that is still being tokenised is not waited for.
    runtime.shutdown_background();
    served
}

async fn accept(listener: TcpListener, house: House) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let router = house.router();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // No more file descriptors, or a connection that was gone at once: others may end soon.
            tokio::time::sleep(STOP_SEEN_AFTER).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_WAIT)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // What goes wrong with a connection is the matter of its two ends.
            let _ = connection.await;
            drop(place);
        });
    }
}
