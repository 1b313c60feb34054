use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glassbox_tensor::View;
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// What a reference implementation computes for one prompt, at every site of a forward pass.
///
/// The file has the prompt as `ids`, one f32 tensor a site named by its path, and in its metadata the `noise` of each site: the
/// largest distance between the reference in f32 and the same model in f64.
#[derive(Debug)]
pub struct Golden {
    ids: Vec<u32>,
    sites: BTreeMap<String, Site>,
}

#[derive(Debug)]
struct Site {
    sizes: Vec<usize>,
    values: Vec<f32>,
    noise: f64,
}

/// A golden file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no golden file.
    #[error("`{}` is no golden file: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The first place where a pass leaves the reference.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Divergence {
    /// A value is too far off.
    #[error(
        "first divergence at `{site}`: found {found:.7e}, wanted {wanted:.7e} (distance {distance:.1e}) at [{at}]; allowed {allowed:.1e}; {agreed}. usual causes: {causes}"
    )]
    TooFar {
        /// Path of the site.
        site: String,
        /// The worst value's index along the named axes.
        at: String,
        /// The value there.
        found: f32,
        /// The reference's value there.
        wanted: f32,
        /// How far they lie apart.
        distance: f64,
        /// How far they might.
        allowed: f64,
        /// Which sites agreed before.
        agreed: String,
        /// What most often goes wrong here.
        causes: &'static str,
    },
    /// The pass has other sizes than the reference.
    #[error("`{site}` has the sizes [{found}] from row {first_row}; the reference has [{wanted}]; {agreed}")]
    Sizes {
        /// Path of the site.
        site: String,
        /// Absolute position of the first row.
        first_row: usize,
        /// Sizes met, with the names of their axes.
        found: String,
        /// Sizes of the reference.
        wanted: String,
        /// Which sites agreed before.
        agreed: String,
    },
    /// The pass has a site that the reference does not know.
    #[error("the reference has no site `{site}`; {agreed}")]
    UnknownSite {
        /// Path of the site.
        site: String,
        /// Which sites agreed before.
        agreed: String,
    },
    /// The pass ended without having shown a site.
    #[error("the pass never came to `{site}`; {agreed}")]
    NeverShown {
        /// Path of the site.
        site: String,
        /// Which sites agreed before.
        agreed: String,
    },
}

/// How close a whole pass came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Closeness {
    /// Sites compared.
    pub sites: usize,
    /// Largest distance at each kind of site (the path without its layer).
    pub distance: BTreeMap<String, f64>,
    /// Largest distance ÷ allowed, of any site.
    pub of_allowed: f64,
}

impl Golden {
    /// Reads `golden.safetensors` of a fixture's folder.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or lacks the prompt, a noise, or holds anything but f32 sites.
    pub fn open(folder: &Path) -> Result<Self, GoldenError> {
        let path = folder.join("golden.safetensors");
        let bytes = std::fs::read(&path).map_err(|source| GoldenError::Read { path: path.clone(), source })?;
        Self::parse(&bytes).map_err(|reason| GoldenError::Malformed { path, reason })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
        let noise = header.metadata().as_ref().and_then(|metadata| metadata.get("noise")).ok_or("it has no `noise`")?;
        let noise: BTreeMap<String, f64> = serde_json::from_str(noise).map_err(|error| error.to_string())?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let mut golden = Self { ids: Vec::new(), sites: BTreeMap::new() };
        for (name, tensor) in tensors.tensors() {
            if name == "ids" {
                let ids = tensor.data().chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().expect("chunks of 8")));
                golden.ids = ids.map(|id| u32::try_from(id).map_err(|_| format!("id {id}"))).collect::<Result<_, _>>()?;
                continue;
            }
            if tensor.dtype() != Dtype::F32 {
                return Err(format!("`{name}` is {:?}, wanted F32", tensor.dtype()));
            }
            let values = tensor.data().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().expect("chunks of 4"))).collect();
            let noise = *noise.get(&name).ok_or(format!("no noise of `{name}`"))?;
            golden.sites.insert(name, Site { sizes: tensor.shape().to_vec(), values, noise });
        }
        if golden.ids.is_empty() { Err("it has no `ids`".to_owned()) } else { Ok(golden) }
    }

    /// The prompt.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The reference's values at a site, by its path.
    #[must_use]
    pub fn values(&self, site: &str) -> Option<&[f32]> {
        self.sites.get(site).map(|site| site.values.as_slice())
    }

    /// Paths of all sites of the reference.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.sites.keys().map(String::as_str)
    }
}

/// Goes with a pass from site to site and keeps the first divergence.
#[derive(Debug)]
pub struct GoldenWalk<'g> {
    golden: &'g Golden,
    seen: Vec<String>,
    divergence: Option<Divergence>,
    closeness: Closeness,
}

impl<'g> GoldenWalk<'g> {
    /// A walk at its start.
    #[must_use]
    pub fn new(golden: &'g Golden) -> Self {
        Self { golden, seen: Vec::new(), divergence: None, closeness: Closeness::default() }
    }

    /// Compares a value of the pass with the reference's, unless an earlier site already diverged.
    ///
    /// - `path`       as `blocks.0.attn.q`
    /// - `first_row`  absolute position of the value's first token or query; a pass may come in pieces
    ///
    /// **Tolerance.** A sound implementation may round in another order, so it may lie as far again from the truth as the
    /// reference's own f32 does, twice at most (the rule of [`agree`](crate::agree)); from truth to reference is once more, so
    /// `allowed = 3 × noise + 2 ulp of the site's largest value`.
    pub fn see(&mut self, path: &str, first_row: usize, value: View<'_>) {
        if self.divergence.is_none() {
            self.divergence = self.compare(path, first_row, value).err();
            self.seen.push(path.to_owned());
        }
    }

    /// Ends the walk.
    ///
    /// # Errors
    ///
    /// The first divergence, or a site of the reference that the pass never showed.
    pub fn finish(self) -> Result<Closeness, Divergence> {
        if let Some(divergence) = self.divergence {
            return Err(divergence);
        }
        match self.golden.sites.keys().find(|site| !self.seen.contains(site)) {
            Some(site) => Err(Divergence::NeverShown { site: site.clone(), agreed: self.agreed() }),
            None => Ok(self.closeness),
        }
    }

    fn compare(&mut self, path: &str, first_row: usize, value: View<'_>) -> Result<(), Divergence> {
        let Some(site) = self.golden.sites.get(path) else {
            return Err(Divergence::UnknownSite { site: path.to_owned(), agreed: self.agreed() });
        };
        let axes = value.axes();
        let fits = value.sizes().len() == site.sizes.len()
            && axes.iter().zip(value.sizes()).zip(&site.sizes).all(|((axis, found), wanted)| match *axis {
                "token" | "query" => first_row + found <= *wanted,
                "key" => found <= wanted,
                _ => found == wanted,
            });
        if !fits {
            let name = |sizes: &[usize]| axes.iter().zip(sizes).map(|(axis, size)| format!("{axis} {size}")).collect::<Vec<_>>().join(", ");
            let (found, wanted) = (name(value.sizes()), name(&site.sizes));
            return Err(Divergence::Sizes { site: path.to_owned(), first_row, found, wanted, agreed: self.agreed() });
        }
        let largest = site.values.iter().filter(|x| x.is_finite()).fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let allowed = 3.0 * site.noise + 2.0 * f64::from(largest.max(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON);
        let (mut worst, mut worst_at, mut worst_wanted) = (0.0, 0, 0.0);
        for (at, found) in value.values().iter().enumerate() {
            let wanted = site.values[place(at, axes, value.sizes(), &site.sizes, first_row)];
            let here = distance(*found, wanted);
            if here > worst {
                (worst, worst_at, worst_wanted) = (here, at, wanted);
            }
        }
        if worst > allowed {
            return Err(Divergence::TooFar {
                site: path.to_owned(),
                at: index_by_name(worst_at, axes, value.sizes(), first_row),
                found: value.values()[worst_at],
                wanted: worst_wanted,
                distance: worst,
                allowed,
                agreed: self.agreed(),
                causes: usual_causes(kind(path)),
            });
        }
        self.closeness.sites += 1;
        self.closeness.of_allowed = self.closeness.of_allowed.max(worst / allowed);
        let largest = self.closeness.distance.entry(kind(path).to_owned()).or_insert(0.0);
        *largest = largest.max(worst);
        Ok(())
    }

    fn agreed(&self) -> String {
        match self.seen.last() {
            None => "it is the first site".to_owned(),
            Some(last) => format!("every earlier site agrees ({}, the last `{last}`)", self.seen.len()),
        }
    }
}

/// The path without its layer.
fn kind(path: &str) -> &str {
    path.strip_prefix("blocks.").and_then(|rest| rest.split_once('.')).map_or(path, |(_, kind)| kind)
}

/// Where the value at `at` of a piece lies in the whole.
fn place(mut at: usize, axes: &[&str], sizes: &[usize], whole: &[usize], first_row: usize) -> usize {
    let (mut place, mut stride) = (0, 1);
    for axis in (0..sizes.len()).rev() {
        let shift = if matches!(axes[axis], "token" | "query") { first_row } else { 0 };
        place += (at % sizes[axis] + shift) * stride;
        at /= sizes[axis];
        stride *= whole[axis];
    }
    place
}

/// `token 5, kv_head 0, d_head 17`; tokens and queries by their absolute position.
fn index_by_name(mut at: usize, axes: &[&str], sizes: &[usize], first_row: usize) -> String {
    let mut parts = Vec::new();
    for (axis, size) in axes.iter().zip(sizes).rev() {
        let shift = if matches!(*axis, "token" | "query") { first_row } else { 0 };
        parts.push(format!("{axis} {}", at % size + shift));
        at /= size;
    }
    parts.reverse();
    parts.join(", ")
}

/// |found − wanted|; 0 for the same infinity, infinite where only one of them is a number.
fn distance(found: f32, wanted: f32) -> f64 {
    if found == wanted {
        return 0.0;
    }
    let distance = (f64::from(found) - f64::from(wanted)).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// What most often goes wrong where the first divergence is at this kind of site.
fn usual_causes(kind: &str) -> &'static str {
    match kind {
        "embed.out" => "embedding scale; learned positions not added, or counted from another start; a transposed table",
        "in" | "mid" | "out" => "a residual added twice or not at all, or taken after the norm",
        "norm_1.out" | "norm_2.out" | "norm.out" => {
            "epsilon; gain or one plus gain; mean not subtracted, or subtracted by a family that does not"
        }
        "attn.q" | "attn.k" | "attn.v" => "a bias left out; a fused matrix split in the wrong order; head count; rows permuted",
        "attn.q_rot" | "attn.k_rot" => {
            "rotary base, scaling, or pairing; norm of q and k left out or after the rotation; position counted from another start"
        }
        "attn.scores" => "the scale; soft-cap; kv head of a head; the mask, or the window by one",
        "attn.pattern" => "softmax over the wrong axis; a masked key with weight",
        "attn.z" => "kv head of a head; the values of another layer or position",
        "attn.out" => "output projection transposed or without its bias; heads merged in the wrong order",
        "attn.added" | "ffn.added" => "the norm after the part, left out or with another gain",
        "ffn.hidden" => "activation (tanh or erf GELU); gate and up exchanged; a bias left out",
        "ffn.out" => "down projection transposed or without its bias",
        "logits" => "tied or untied head; final soft-cap",
        _ => "unknown here",
    }
}

#[cfg(test)]
mod tests {
    use super::{Closeness, Divergence, Golden, GoldenWalk, Site};
    use glassbox_tensor::View;

    fn golden() -> Golden {
        let mut golden = Golden { ids: vec![1, 2], sites: Default::default() };
        let values = vec![1.0, 2.0, 3.0, 4.0];
        golden.sites.insert("embed.out".into(), Site { sizes: vec![2, 2], values: values.clone(), noise: 0.0 });
        let values = [values, vec![5.0, 6.0, 7.0, 8.0]].concat();
        golden.sites.insert("blocks.0.attn.k_rot".into(), Site { sizes: vec![2, 2, 2], values, noise: 1e-3 });
        golden
    }

    fn walk(k_rot: &[f32]) -> Result<Closeness, Divergence> {
        let golden = golden();
        let mut walk = GoldenWalk::new(&golden);
        for (row, values) in [[1.0, 2.0], [3.0, 4.0]].iter().enumerate() {
            walk.see("embed.out", row, View::new(&["token", "d_model"], &[1, 2], values).expect("sizes fit"));
        }
        walk.see("blocks.0.attn.k_rot", 0, View::new(&["token", "kv_head", "d_head"], &[2, 2, 2], k_rot).expect("sizes fit"));
        walk.finish()
    }

    #[test]
    fn a_pass_in_pieces_within_three_times_the_noise_agrees() {
        let closeness = walk(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0029, 7.0, 8.0]).expect("2.9e-3 is allowed");
        assert_eq!(closeness.sites, 3);
        assert!(closeness.of_allowed > 0.9 && closeness.of_allowed <= 1.0);
    }

    #[test]
    fn the_message_names_the_place_and_the_usual_causes() {
        let error = walk(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0]).expect_err("0.5 is too far");
        let message = error.to_string();
        for part in [
            "`blocks.0.attn.k_rot`",
            "[token 1, kv_head 1, d_head 0]",
            "wanted 7.0",
            "allowed 3.0e-3",
            "every earlier site agrees",
            "pairing",
        ] {
            assert!(message.contains(part), "`{part}` in: {message}");
        }
    }

    #[test]
    fn a_nan_diverges() {
        assert!(walk(&[1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0, 7.0, 8.0]).is_err());
    }

    #[test]
    fn a_site_that_never_came_is_missed() {
        let golden = golden();
        let error = GoldenWalk::new(&golden).finish().expect_err("nothing was shown");
        assert!(matches!(error, Divergence::NeverShown { .. }));
    }
}
