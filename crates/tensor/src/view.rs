use crate::TensorError;

/// Values with named axes, in row order: the last axis is contiguous.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    axes: &'a [&'static str],
    sizes: &'a [usize],
    values: &'a [f32],
}

impl<'a> View<'a> {
    /// Names the axes of `values`.
    ///
    /// # Errors
    ///
    /// Where the product of `sizes` is not the number of values, or axes and sizes differ in number.
    pub fn new(axes: &'a [&'static str], sizes: &'a [usize], values: &'a [f32]) -> Result<Self, TensorError> {
        let wanted = product(sizes);
        if wanted != Some(values.len()) || axes.len() != sizes.len() {
            return Err(wrong_length(axes, sizes, wanted.unwrap_or(usize::MAX), values.len()));
        }
        Ok(Self { axes, sizes, values })
    }

    /// Names of the axes.
    #[must_use]
    pub fn axes(&self) -> &'a [&'static str] {
        self.axes
    }

    /// Sizes of the axes.
    #[must_use]
    pub fn sizes(&self) -> &'a [usize] {
        self.sizes
    }

    /// The values in row order.
    #[must_use]
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// The sizes of exactly these axes, to be destructured at a room's door.
    ///
    /// # Errors
    ///
    /// Where the names differ; the message holds both lists.
    pub fn sizes_of<const N: usize>(&self, wanted: [&'static str; N]) -> Result<[usize; N], TensorError> {
        match <[usize; N]>::try_from(self.sizes) {
            Ok(sizes) if self.axes == wanted => Ok(sizes),
            _ => Err(TensorError::WrongAxes { wanted: wanted.to_vec(), found: self.axes.to_vec() }),
        }
    }
}

/// Values with named axes that may be changed in place.
#[derive(Debug)]
pub struct ViewMut<'a> {
    axes: &'a [&'static str],
    sizes: &'a [usize],
    values: &'a mut [f32],
}

impl<'a> ViewMut<'a> {
    /// Names the axes of `values`.
    ///
    /// # Errors
    ///
    /// Where the product of `sizes` is not the number of values, or axes and sizes differ in number.
    pub fn new(axes: &'a [&'static str], sizes: &'a [usize], values: &'a mut [f32]) -> Result<Self, TensorError> {
        let wanted = product(sizes);
        if wanted != Some(values.len()) || axes.len() != sizes.len() {
            return Err(wrong_length(axes, sizes, wanted.unwrap_or(usize::MAX), values.len()));
        }
        Ok(Self { axes, sizes, values })
    }

    /// The same values, to be read.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { axes: self.axes, sizes: self.sizes, values: self.values }
    }

    /// The values in row order, to be changed.
    #[must_use]
    pub fn values(&mut self) -> &mut [f32] {
        self.values
    }
}

fn product(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size))
}

fn wrong_length(axes: &[&'static str], sizes: &[usize], wanted: usize, found: usize) -> TensorError {
    TensorError::WrongLength { axes: axes.to_vec(), sizes: sizes.to_vec(), wanted, found }
}
