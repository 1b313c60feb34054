//! Weights meet slots: every tensor of the file finds its place in the right layout, or the file is refused.

use std::collections::{BTreeMap, BTreeSet};

use glassbox_checkpoint::{Checkpoint, StoredTensor};
use glassbox_mechanisms::heads::Heads;
use glassbox_mechanisms::matmul::{Panels, Weight};
use glassbox_mechanisms::{MechanismError, Workers};
use glassbox_tensor::{Bytes, Matrix};

use crate::ModelError;
use crate::blueprint::{Blueprint, HeadMatrix};
use crate::families::{Dialect, Layout, TensorRow};
use crate::slot::{Axis, Slot};

/// The weights of a model by slot and layer; layer 0 for slots outside the blocks.
#[derive(Debug)]
pub(crate) struct Weights {
    matrices: BTreeMap<(Slot, usize), Matrix>,
    panels: BTreeMap<(Slot, usize), Panels>,
}

impl Weights {
    /// Takes every tensor that the blueprint has a slot for.
    ///
    /// # Errors
    ///
    /// Where one is missing, has other sizes than its slot, or is left over.
    pub(crate) fn read(checkpoint: &Checkpoint, blueprint: &Blueprint, dialect: &Dialect) -> Result<Self, ModelError> {
        let mut reader =
            Reader { checkpoint, blueprint, body: body(checkpoint, dialect), matrices: BTreeMap::new(), used: BTreeSet::new() };
        for row in dialect.tensors {
            if row.slots.iter().all(|slot| slot.axes(blueprint).is_none()) {
                continue;
            }
            let layers = if row.slots[0].is_of_a_block() { blueprint.layers.len() } else { 1 };
            for layer in 0..layers {
                reader.take(row, layer)?;
            }
        }
        if blueprint.unembedding.head == HeadMatrix::TiedToEmbedding {
            reader.check_tied_head(dialect)?;
        }
        reader.refuse_left_over(dialect)?;
        Ok(Self { matrices: reader.matrices, panels: BTreeMap::new() })
    }

    /// Lays out in panels what tokens are multiplied with, where its storage type has panels: their activations are rounded from then on.
    ///
    /// # Errors
    ///
    /// Where the system gives no memory.
    pub(crate) fn lay_out(&mut self, blueprint: &Blueprint, workers: &Workers) -> Result<(), MechanismError> {
        let wanted = |slot: &Slot, weight: &Matrix| slot.is_a_factor(blueprint) && Panels::exist_for(weight.storage());
        let (slots, rows): (Vec<_>, Vec<_>) = self.matrices.extract_if(.., |(slot, _), weight| wanted(slot, weight)).unzip();
        let panels = Panels::of(&rows, workers, |index| rows[index].release())?;
        self.panels = slots.into_iter().zip(panels).collect();
        Ok(())
    }

    /// The weight of a slot that the blueprint has; moves it out.
    pub(crate) fn take(&mut self, slot: Slot, layer: usize) -> Weight {
        match self.panels.remove(&(slot, layer)) {
            Some(panels) => Weight::Panels(panels),
            None => Weight::Rows(self.take_rows(slot, layer)),
        }
    }

    /// As stored; moves it out.
    pub(crate) fn take_rows(&mut self, slot: Slot, layer: usize) -> Matrix {
        self.matrices
            .remove(&(slot, layer))
            .unwrap_or_else(|| unreachable!("`{}` of layer {layer} was filled when the weights were read", slot.name()))
    }

    /// A slot that nobody took.
    pub(crate) fn left_over(&self) -> Option<Slot> {
        self.matrices.keys().chain(self.panels.keys()).next().map(|(slot, _)| *slot)
    }

    /// As [`Weights::take`], decoded; for gains and biases.
    pub(crate) fn take_vector(&mut self, slot: Slot, layer: usize) -> Vec<f32> {
        decode(&self.take_rows(slot, layer))
    }
}

struct Reader<'a> {
    checkpoint: &'a Checkpoint,
    blueprint: &'a Blueprint,
    body: &'static str,
    matrices: BTreeMap<(Slot, usize), Matrix>,
    used: BTreeSet<String>,
}

impl Reader<'_> {
    fn take(&mut self, row: &TensorRow, layer: usize) -> Result<(), ModelError> {
        let name = self.found_name(row.name, layer);
        let tensor = self.checkpoint.require_tensor(&name)?;
        let axes: Vec<Vec<Axis>> = row.slots.iter().filter_map(|slot| slot.axes(self.blueprint)).collect();
        check_shape(&tensor, row, &axes)?;
        let whole = arrange(&tensor, row, self.blueprint.attention.heads)?;
        let mut first = 0;
        for (slot, axes) in row.slots.iter().zip(&axes) {
            let part = match axes.as_slice() {
                [_] if row.slots.len() == 1 => whole.clone(),
                [vector] => cut_vector(&whole, first, vector.size),
                [rows, ..] => whole.slice_rows(first..first + rows.size).expect("the sum of all rows was checked above"),
                [] => unreachable!("every slot has an axis"),
            };
            first += axes[0].size;
            self.matrices.insert((*slot, layer), part);
        }
        self.used.insert(name);
        Ok(())
    }

    /// Of a name with two ends, as in `norm.weight|gamma`, the one that the file has; else the first.
    fn found_name(&self, pattern: &str, layer: usize) -> String {
        let Some((first, other_end)) = pattern.split_once('|') else { return self.name(pattern, layer) };
        let stem = first.rsplit_once('.').map_or("", |(stem, _)| stem);
        let (first, other) = (self.name(first, layer), self.name(&format!("{stem}.{other_end}"), layer));
        if self.checkpoint.contains_tensor(&other) { other } else { first }
    }

    fn name(&self, pattern: &str, layer: usize) -> String {
        let outside = self.body.strip_suffix("model.").filter(|outside| outside.ends_with('.')).unwrap_or_default();
        pattern.replace("{body}", self.body).replace("{outside}", outside).replace("{layer}", &layer.to_string())
    }

    /// A tied head that is stored all the same must be the embedding table again.
    fn check_tied_head(&mut self, dialect: &Dialect) -> Result<(), ModelError> {
        let Some(row) = dialect.tensors.iter().find(|row| row.slots == [Slot::WUnembedding]) else { return Ok(()) };
        let name = self.name(row.name, 0);
        let Some(head) = self.checkpoint.tensor(&name)? else { return Ok(()) };
        let embedding = &self.matrices[&(Slot::Embedding, 0)];
        let same = head.shape == [embedding.rows(), embedding.columns()] && {
            let head = head.matrix()?;
            let equal_rows = |row| head.storage() == embedding.storage() && head.row_bytes(row) == embedding.row_bytes(row);
            (0..head.rows()).all(equal_rows)
        };
        self.used.insert(name.clone());
        if same { Ok(()) } else { Err(ModelError::TiedHeadDiffers { file: head.file().to_owned(), tensor: name }) }
    }

    fn refuse_left_over(&self, dialect: &Dialect) -> Result<(), ModelError> {
        let spare = |name: &str| {
            dialect.spare.iter().any(|spare| {
                let pattern = spare.name.replace("{body}", self.body);
                matches(&pattern, name)
            })
        };
        let left_over = self.checkpoint.tensor_names().filter(|name| !self.used.contains(*name) && !spare(name));
        let tensors: Vec<String> = left_over.map(str::to_owned).collect();
        if tensors.is_empty() {
            return Ok(());
        }
        let file = self.checkpoint.label().to_owned();
        Err(ModelError::UnreadTensors { file, family: self.blueprint.family, tensors })
    }
}

/// What stands before the names of this file: the first candidate for which it has the embedding.
fn body(checkpoint: &Checkpoint, dialect: &Dialect) -> &'static str {
    let embedding = dialect.tensors.iter().find(|row| row.slots == [Slot::Embedding]).map_or("", |row| row.name);
    let fits = |body: &&str| checkpoint.contains_tensor(&embedding.replace("{body}", body));
    dialect.bodies.iter().copied().find(|body| fits(body)).unwrap_or(dialect.bodies[0])
}

/// Whether a spare name with `{layer}` or a `*` at its end covers `name`.
fn matches(pattern: &str, name: &str) -> bool {
    if let Some(start) = pattern.strip_suffix('*') {
        return name.starts_with(start);
    }
    match pattern.split_once("{layer}") {
        None => pattern == name,
        Some((before, after)) => {
            let layer = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            layer.is_some_and(|layer| !layer.is_empty() && layer.bytes().all(|byte| byte.is_ascii_digit()))
        }
    }
}

fn check_shape(tensor: &StoredTensor, row: &TensorRow, axes: &[Vec<Axis>]) -> Result<(), ModelError> {
    // A size that only a file claims may be any; one that is cut off here fits no tensor.
    let rows = axes.iter().fold(0_usize, |rows, axes| rows.saturating_add(axes[0].size));
    let mut wanted: Vec<(String, usize)> = vec![(axes.iter().map(|axes| axes[0].name).collect::<Vec<_>>().join("+"), rows)];
    wanted.extend(axes[0].iter().skip(1).map(|axis| (axis.name.to_owned(), axis.size)));
    if row.layout == Layout::Transposed {
        wanted.reverse();
    }
    if wanted.iter().map(|(_, size)| size).eq(&tensor.shape) {
        return Ok(());
    }
    Err(ModelError::TensorShape {
        tensor: tensor.name.clone(),
        slot: row.slots[0].name(),
        wanted: wanted.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(" x "),
        found: tensor.shape.clone(),
        file: tensor.file().to_owned(),
    })
}

/// The tensor as its slots want it. Only numbers' places change, except for a gain stored minus one.
fn arrange(tensor: &StoredTensor, row: &TensorRow, heads: Heads) -> Result<Matrix, ModelError> {
    let stored = tensor.matrix()?;
    let is_vector = tensor.shape.len() == 1;
    let rows = tensor.shape[0];
    Ok(match row.layout {
        Layout::AsIs => stored,
        Layout::Transposed => transpose(&stored),
        Layout::PairsAsNeighbours => moved(&stored, is_vector, halves(rows, heads_of(row.slots[0], heads))),
        Layout::HeadByHead => moved(&stored, is_vector, one_after_another(rows, heads)),
        Layout::GainMinusOne => {
            let gain: Vec<f32> = decode(&stored).iter().map(|stored| 1.0 + stored).collect();
            from_f32(1, gain.len(), &gain)
        }
    })
}

/// Heads of a slot whose rows are reordered inside each.
pub(crate) fn heads_of(slot: Slot, heads: Heads) -> usize {
    if matches!(slot, Slot::WQuery | Slot::BQuery) { heads.heads() } else { heads.kv_heads() }
}

/// [in, out] to [out, in]. Block types cannot be transposed in place, so the result is f32; plain floats keep every number.
fn transpose(stored: &Matrix) -> Matrix {
    let (inputs, outputs) = (stored.rows(), stored.columns());
    let values = decode(stored);
    let mut out = vec![0.0; values.len()];
    for input in 0..inputs {
        for output in 0..outputs {
            out[output * inputs + input] = values[input * outputs + output];
        }
    }
    from_f32(outputs, inputs, &out)
}

/// The file's row of a head that becomes row `row` of that head: its pairs are neighbours there and halves here.
fn neighbour_of_half(row: usize, d_head: usize) -> usize {
    let half = d_head / 2;
    if row < half { 2 * row } else { 2 * (row - half) + 1 }
}

/// The file's rows, whose pairs are neighbours, in the order in which pairs are halves.
fn halves(rows: usize, heads: usize) -> impl Iterator<Item = usize> {
    let d_head = rows / heads;
    (0..rows).map(move |row| row / d_head * d_head + neighbour_of_half(row % d_head, d_head))
}

/// The file's rows, which hold each head's q, k and v together, in the order of all q, all k, all v.
fn one_after_another(rows: usize, heads: Heads) -> impl Iterator<Item = usize> {
    let (heads, d_head) = (heads.heads(), heads.d_head());
    debug_assert_eq!(rows, 3 * heads * d_head, "a family with this layout has one kv head a head");
    (0..3).flat_map(move |part| (0..heads).flat_map(move |head| (0..d_head).map(move |row| (head * 3 + part) * d_head + row)))
}

/// Other rows of a matrix, or other numbers of a vector.
fn moved(stored: &Matrix, is_vector: bool, rows: impl Iterator<Item = usize>) -> Matrix {
    if is_vector {
        let values = decode(stored);
        let moved: Vec<f32> = rows.map(|row| values[row]).collect();
        return from_f32(1, moved.len(), &moved);
    }
    let bytes: Vec<u8> = rows.flat_map(|row| stored.row_bytes(row)).copied().collect();
    Matrix::new(stored.rows(), stored.columns(), stored.storage(), Bytes::new(bytes)).expect("the same rows in another order")
}

/// The opposite of a row of [`Layout::PairsAsNeighbours`]: pairs that are halves of a head become neighbours.
pub(crate) fn neighbours(matrix: &Matrix, heads: usize, is_vector: bool) -> Matrix {
    let rows = if is_vector { matrix.columns() } else { matrix.rows() };
    let mut source = vec![0; rows];
    halves(rows, heads).enumerate().for_each(|(row, from)| source[from] = row);
    moved(matrix, is_vector, source.into_iter())
}

/// Vectors one after the other, or matrices below one another, as `f32`.
pub(crate) fn joined(parts: &[Matrix], is_vector: bool) -> Matrix {
    let values: Vec<f32> = parts.iter().flat_map(decode).collect();
    let columns = if is_vector { values.len() } else { parts[0].columns() };
    from_f32(values.len() / columns, columns, &values)
}

fn cut_vector(whole: &Matrix, first: usize, size: usize) -> Matrix {
    from_f32(1, size, &decode(whole)[first..first + size])
}

fn decode(matrix: &Matrix) -> Vec<f32> {
    let mut values = vec![0.0; matrix.rows() * matrix.columns()];
    for (row, values) in values.chunks_exact_mut(matrix.columns().max(1)).enumerate() {
        matrix.decode_row(row, values);
    }
    values
}

fn from_f32(rows: usize, columns: usize, values: &[f32]) -> Matrix {
    Matrix::from_f32(rows, columns, values).expect("as many values as rows × columns")
}
