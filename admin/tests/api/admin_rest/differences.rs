//! Where we answer differently on purpose.

use crate::replay::Difference;

pub(crate) const ON_PURPOSE: &[Difference] = &[];
