//! A map from hashes to values whose copies share structure.
//!
//! A copy costs one count. A change copies the few nodes on the way to its place where they are
//! shared, and works in place where they are not, so that filling a map of one's own copies nothing.

use std::sync::Arc;

/// Children of a branch: five bits of the key each.
const WIDTH: usize = 32;
const BITS: u32 = WIDTH.trailing_zeros();
/// A leaf with more entries than this becomes a branch.
const LEAF: usize = 48;
/// Where the bits of a key end; a leaf there grows instead.
const MAX_SHIFT: u32 = 60;

/// A persistent map. Several values may have the same key, where those who use it tell them apart.
#[derive(Debug, Clone)]
pub(crate) struct Map<V> {
    root: Node<V>,
    len: usize,
}

#[derive(Debug, Clone)]
enum Node<V> {
    Empty,
    /// Sorted by key.
    Leaf(Arc<Vec<(u64, V)>>),
    Branch(Arc<[Node<V>; WIDTH]>),
}

impl<V: Clone> Map<V> {
    pub(crate) const fn new() -> Self {
        Self { root: Node::Empty, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.find(key, |_| true)
    }

    /// The value of a key that is wanted.
    pub(crate) fn find(&self, key: u64, wanted: impl Fn(&V) -> bool) -> Option<&V> {
        let mut node = &self.root;
        let mut shift = 0;
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(entries) => {
                    let from = entries.partition_point(|(known, _)| *known < key);
                    let same = entries[from..].iter().take_while(|(known, _)| *known == key);
                    return same.map(|(_, value)| value).find(|value| wanted(value));
                }
                Node::Branch(children) => {
                    node = &children[slot(key, shift)];
                    shift += BITS;
                }
            }
        }
    }

    /// The value of a key that is wanted, to be changed; made if there is none.
    pub(crate) fn entry(
        &mut self,
        key: u64,
        wanted: impl Fn(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> &mut V {
        let leaf = Self::leaf(&mut self.root, key);
        let from = leaf.partition_point(|(known, _)| *known < key);
        let same = leaf[from..].iter().take_while(|(known, _)| *known == key);
        let found = same.map(|(_, value)| value).position(wanted);
        let at = from + found.unwrap_or_default();
        if found.is_none() {
            grow(leaf);
            leaf.insert(at, (key, make()));
            self.len += 1;
        }
        &mut leaf[at].1
    }

    /// The value of a key, to be changed.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        self.get(key)?;
        let leaf = Self::leaf(&mut self.root, key);
        let at = leaf.partition_point(|(known, _)| *known < key);
        leaf.get_mut(at).map(|(_, value)| value)
    }

    /// Adds a value, also where the key is there already.
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        let leaf = Self::leaf(&mut self.root, key);
        let at = leaf.partition_point(|(known, _)| *known < key);
        grow(leaf);
        leaf.insert(at, (key, value));
        self.len += 1;
    }

    /// Takes out the value of a key that is wanted.
    pub(crate) fn remove(&mut self, key: u64, wanted: impl Fn(&V) -> bool) -> Option<V> {
        self.find(key, &wanted)?;
        let leaf = Self::leaf(&mut self.root, key);
        let from = leaf.partition_point(|(known, _)| *known < key);
        let at = from + leaf[from..].iter().position(|(k, value)| *k == key && wanted(value))?;
        let (_, value) = leaf.remove(at);
        self.len -= 1;
        if self.len == 0 {
            self.root = Node::Empty;
        }
        Some(value)
    }

    /// Puts a value in place of the one with that key. For keys that only one value has.
    pub(crate) fn replace(&mut self, key: u64, value: V) {
        match self.get_mut(key) {
            Some(known) => *known = value,
            None => self.insert(key, value),
        }
    }

    /// Hands every value to `each`.
    pub(crate) fn for_each<'m>(&'m self, each: &mut impl FnMut(&'m V)) {
        self.root.for_each(each);
    }

    /// The leaf a key belongs in, to be changed, with room for one more entry.
    fn leaf(mut node: &mut Node<V>, key: u64) -> &mut Vec<(u64, V)> {
        let mut shift = 0;
        loop {
            if let Node::Leaf(entries) = node
                && entries.len() >= LEAF
                && shift < MAX_SHIFT
            {
                *node = split(std::mem::take(Arc::make_mut(entries)), shift);
            }
            if matches!(node, Node::Empty) {
                *node = Node::Leaf(Arc::default());
            }
            match node {
                Node::Branch(children) => {
                    node = &mut Arc::make_mut(children)[slot(key, shift)];
                    shift += BITS;
                }
                Node::Leaf(entries) => return Arc::make_mut(entries),
                Node::Empty => unreachable!("made a leaf above"),
            }
        }
    }
}

impl<V> Node<V> {
    fn for_each<'m>(&'m self, each: &mut impl FnMut(&'m V)) {
        match self {
            Self::Empty => {}
            Self::Leaf(entries) => entries.iter().for_each(|(_, value)| each(value)),
            Self::Branch(children) => children.iter().for_each(|child| child.for_each(each)),
        }
    }
}

impl<V: Clone> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

fn split<V>(entries: Vec<(u64, V)>, shift: u32) -> Node<V> {
    let mut parts: [Vec<(u64, V)>; WIDTH] = std::array::from_fn(|_| Vec::new());
    for entry in entries {
        let part = &mut parts[slot(entry.0, shift)];
        grow(part);
        part.push(entry);
    }
    let node =
        |part: Vec<_>| if part.is_empty() { Node::Empty } else { Node::Leaf(Arc::new(part)) };
    Node::Branch(Arc::new(parts.map(node)))
}

/// Makes room in small steps: there are very many leaves, and twice the room would be wasted in each.
fn grow<V>(entries: &mut Vec<V>) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(1 + entries.len() / 8);
    }
}

const fn slot(key: u64, shift: u32) -> usize {
    (key >> shift) as usize % WIDTH
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::Map;

    #[test]
    fn agrees_with_a_plain_map_and_leaves_copies_alone() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut plain: BTreeMap<u64, u32> = BTreeMap::new();
        let mut map = Map::new();
        let mut copies = Vec::new();
        for step in 0..60_000_u32 {
            // Few different low bits, so that the tree gets deep.
            let key = (rng.random::<u64>() << 12) >> rng.random_range(0..50) & !0xff;
            if rng.random_bool(0.6) {
                *map.entry(key, |_| true, || 0) = step;
                plain.insert(key, step);
            } else {
                assert_eq!(map.remove(key, |_| true), plain.remove(&key));
            }
            assert_eq!(map.len(), plain.len());
            assert_eq!(map.get(key), plain.get(&key));
            if step % 7_000 == 0 {
                copies.push((map.clone(), plain.clone()));
            }
        }
        copies.push((map, plain));
        for (map, plain) in copies {
            let mut values = Vec::new();
            map.for_each(&mut |value| values.push(*value));
            values.sort_unstable();
            let mut expected: Vec<u32> = plain.values().copied().collect();
            expected.sort_unstable();
            assert_eq!(values, expected);
            assert!(plain.iter().all(|(key, value)| map.get(*key) == Some(value)));
        }
    }

    #[test]
    fn several_values_of_one_key() {
        let mut map = Map::new();
        for value in 0..200 {
            map.insert(1, value);
        }
        assert_eq!(map.find(1, |value| *value == 150), Some(&150));
        assert_eq!(map.remove(1, |value| *value == 150), Some(150));
        assert_eq!(map.find(1, |value| *value == 150), None);
        assert_eq!(map.len(), 199);
        assert!(map.remove(2, |_| true).is_none());
    }
}
