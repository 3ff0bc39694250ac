//! Paging and search text.

/// How many ids go into one statement.
pub(crate) const ID_CHUNK: usize = 500;

/// How many ids may narrow a paged list. They go into one statement, since a page cannot be put
/// together from pages of parts; SQLite takes 32,766 values in one, PostgreSQL 65,535.
pub const MAX_FILTER_IDS: usize = 4096;

/// The most rows that one page holds.
pub const MAX_PAGE_SIZE: i64 = 10_000;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    current: i64,
    size: i64,
}

impl PageRequest {
    /// Page `current` (from 1) of `size` rows.
    ///
    /// As the reference: a page below 1 is the first, a size below 1 is 12. Ours: a size above
    /// [`MAX_PAGE_SIZE`] is that size.
    #[must_use]
    pub fn new(current: i64, size: i64) -> Self {
        let size = if size < 1 { 12 } else { size.min(MAX_PAGE_SIZE) };
        Self { current: current.max(1), size }
    }

    /// The page, from 1.
    #[must_use]
    pub const fn current(self) -> i64 {
        self.current
    }

    /// Rows of a page.
    #[must_use]
    pub const fn size(self) -> i64 {
        self.size
    }

    /// Rows before the page.
    #[must_use]
    pub const fn offset(self) -> i64 {
        (self.current - 1).saturating_mul(self.size)
    }
}

/// Part of a list, and how long the whole list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What was asked for.
    pub request: PageRequest,
    /// The rows, in the list's order.
    pub rows: Vec<T>,
    /// Rows of the whole list.
    pub total: i64,
}

impl<T> Page<T> {
    /// Pages of the whole list; 0 when it is empty.
    #[must_use]
    pub const fn total_pages(&self) -> i64 {
        (self.total + self.request.size - 1) / self.request.size
    }

    /// The same page of other rows.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page {
            request: self.request,
            rows: self.rows.into_iter().map(f).collect(),
            total: self.total,
        }
    }
}

/// A pattern for `LOWER(column) LIKE … ESCAPE '\'`, made of plain text: `%`, `_` and `\` in it are
/// literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Like(String);

impl Like {
    /// Texts that contain `text`; `None` for an empty text, which every text contains.
    ///
    /// The comparison ignores the case of ASCII letters, and of no others, on both stores.
    #[must_use]
    pub fn contains(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let mut pattern = String::with_capacity(text.len() + 2);
        pattern.push('%');
        for c in text.chars() {
            if matches!(c, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            // Here and not by the database: to PostgreSQL a parameter has the database's locale,
            // while the columns compare by bytes.
            pattern.push(c.to_ascii_lowercase());
        }
        pattern.push('%');
        Some(Self(pattern))
    }

    /// The pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A search text `include!exclude`: what must be contained, and what must not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keyword {
    /// Must be contained.
    pub include: Option<Like>,
    /// Must not be contained.
    pub exclude: Option<Like>,
}

impl Keyword {
    /// Reads the text; without `!` all of it must be contained.
    ///
    /// Source: ShenYu 2.7.1, generic search.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (include, exclude) = text.split_once('!').unwrap_or((text, ""));
        Self { include: Like::contains(include.trim()), exclude: Like::contains(exclude.trim()) }
    }

    pub(crate) fn include(&self) -> Option<&str> {
        self.include.as_ref().map(Like::as_str)
    }

    pub(crate) fn exclude(&self) -> Option<&str> {
        self.exclude.as_ref().map(Like::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::{Keyword, Like, MAX_PAGE_SIZE, Page, PageRequest};

    #[test]
    fn odd_page_requests_become_the_nearest_sensible_ones() {
        for (current, size, expected) in [
            (1, 12, (1, 12, 0)),
            (0, 0, (1, 12, 0)),
            (-1, -5, (1, 12, 0)),
            (3, 50, (3, 50, 100)),
            (2, 100_000, (2, MAX_PAGE_SIZE, MAX_PAGE_SIZE)),
            (i64::MAX, i64::MAX, (i64::MAX, MAX_PAGE_SIZE, i64::MAX)),
        ] {
            let request = PageRequest::new(current, size);
            assert_eq!((request.current(), request.size(), request.offset()), expected);
        }
    }

    #[test]
    fn pages_are_counted_up() {
        for (total, expected) in [(0, 0), (1, 1), (12, 1), (13, 2)] {
            let page = Page::<()> { request: PageRequest::new(1, 12), rows: Vec::new(), total };
            assert_eq!(page.total_pages(), expected);
        }
    }

    #[test]
    fn wildcards_in_search_text_are_literal() {
        assert_eq!(Like::contains(r"50%_\x").unwrap().as_str(), r"%50\%\_\\x%");
        assert_eq!(Like::contains(""), None);
    }

    #[test]
    fn keywords_split_at_the_first_exclamation_mark() {
        let keyword = Keyword::parse("order!old!er");
        assert_eq!(keyword.include(), Some("%order%"));
        assert_eq!(keyword.exclude(), Some("%old!er%"));
        assert_eq!(Keyword::parse("!x").include(), None);
    }
}
