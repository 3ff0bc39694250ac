//! Pages of lists, in the shapes that clients know.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ApiResult},
    extract::{JavaType, QueryArgs, Violations},
};

/// `currentPage` and `pageSize` as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageQuery {
    current: Option<i32>,
    size: Option<i32>,
}

/// The parameters of [`PageQuery`], for [`FromQuery::PARAMETERS`](crate::extract::FromQuery).
pub const CURRENT_PAGE: (&str, JavaType, bool) = ("currentPage", JavaType::Integer, true);
/// See [`CURRENT_PAGE`].
pub const PAGE_SIZE: (&str, JavaType, bool) = ("pageSize", JavaType::Integer, true);

impl PageQuery {
    /// The page `current` of `size` rows.
    #[must_use]
    pub const fn new(current: Option<i32>, size: Option<i32>) -> Self {
        Self { current, size }
    }

    /// Reads both; whether they are there is checked by `checked`.
    ///
    /// # Errors
    /// One of them is no integer.
    pub fn read(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { current: args.integer("currentPage")?, size: args.integer("pageSize")? })
    }

    /// Reads both, for the lists that refuse a call without them while binding.
    ///
    /// # Errors
    /// One of them is missing or no integer.
    pub fn required(args: &QueryArgs) -> ApiResult<Self> {
        let present = |name| {
            let value = args.integer(name)?;
            value.ok_or_else(|| ApiError::missing_parameter(name)).map(Some)
        };
        Ok(Self { current: present("currentPage")?, size: present("pageSize")? })
    }

    /// Notes what is missing, for the lists that check it after the permission.
    pub fn check(self, rules: &mut Violations) {
        rules.not_null("currentPage", self.current.as_ref());
        rules.not_null("pageSize", self.size.as_ref());
    }

    /// Notes a size out of `1..=1000`, for the lists that limit it.
    pub fn check_size(self, rules: &mut Violations) {
        rules.range("pageSize", self.size, 1, 1000);
    }

    /// The wanted page, from 1; what is missing or below 1 is 1.
    #[must_use]
    pub fn current(self) -> i64 {
        self.current.map_or(1, i64::from).max(1)
    }

    /// Rows of a page; what is missing or below 1 is 12, and no page is larger than the store
    /// gives.
    #[must_use]
    pub fn size(self) -> i64 {
        match self.size {
            Some(size) if size > 0 => i64::from(size).min(longmen_db::MAX_PAGE_SIZE),
            _ => 12,
        }
    }

    /// What to ask the store for.
    #[must_use]
    pub fn request(self) -> longmen_db::PageRequest {
        longmen_db::PageRequest::new(self.current(), self.size())
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pager<T> {
    /// Which part.
    page: Option<PageInfo>,
    /// Its rows.
    #[schema(inline)]
    data_list: Option<Vec<T>>,
}

/// Which part of a list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    current_page: i64,
    pre_page: i64,
    next_page: i64,
    page_size: i64,
    offset: i64,
    total_page: i64,
    total_count: i64,
}

impl<T> Pager<T> {
    /// The form with neighbours: selectors, rules, users, namespaces, app keys.
    #[must_use]
    pub fn with_neighbours(query: PageQuery, total: i64, rows: Vec<T>) -> Self {
        let (current, size) = (query.current(), query.size());
        let total_page = pages(total, size);
        Self::of(
            PageInfo {
                current_page: current,
                pre_page: (current - 1).max(1),
                next_page: (current + 1).min(total_page),
                page_size: size,
                offset: 0,
                total_page,
                total_count: total,
            },
            rows,
        )
    }

    /// The form without neighbours: plugin templates, handles, metadata, dictionary, roles.
    #[must_use]
    pub fn plain(query: PageQuery, total: i64, rows: Vec<T>) -> Self {
        let (current, size) = (query.current(), query.size());
        Self::of(
            PageInfo {
                current_page: current,
                pre_page: 0,
                next_page: 0,
                page_size: size,
                offset: size,
                total_page: pages(total, size),
                total_count: total,
            },
            rows,
        )
    }

    /// The form of lists that are always whole: plugins of a namespace, instances.
    #[must_use]
    pub fn whole(query: PageQuery, rows: Vec<T>) -> Self {
        let (current, size) = (query.current(), query.size());
        Self::of(
            PageInfo {
                current_page: current,
                pre_page: 0,
                next_page: 0,
                page_size: size,
                offset: (current - 1).saturating_mul(size),
                total_page: 0,
                total_count: 0,
            },
            rows,
        )
    }

    /// Of a caller who sees nothing at all.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { page: None, data_list: None }
    }

    const fn of(page: PageInfo, rows: Vec<T>) -> Self {
        Self { page: Some(page), data_list: Some(rows) }
    }
}

fn pages(total: i64, size: i64) -> i64 {
    (total + size - 1) / size
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(text: &str) -> PageQuery {
        PageQuery::read(&QueryArgs::parse(text.as_bytes())).unwrap()
    }

    fn page(pager: &Pager<i32>) -> serde_json::Value {
        serde_json::to_value(pager).unwrap()["page"].clone()
    }

    #[test]
    fn odd_pages_become_the_first_and_odd_sizes_twelve() {
        for (text, current, size) in [
            ("currentPage=2&pageSize=50", 2, 50),
            ("currentPage=0&pageSize=0", 1, 12),
            ("currentPage=-1&pageSize=-5", 1, 12),
            ("", 1, 12),
        ] {
            assert_eq!((query(text).current(), query(text).size()), (current, size), "{text}");
        }
        assert!(PageQuery::read(&QueryArgs::parse(b"pageSize=abc")).is_err());
    }

    #[test]
    fn the_three_forms() {
        let asked = query("currentPage=1&pageSize=2");
        assert_eq!(
            page(&Pager::with_neighbours(asked, 3, vec![1, 2])),
            json!({"currentPage": 1, "prePage": 1, "nextPage": 2, "pageSize": 2, "offset": 0,
                   "totalPage": 2, "totalCount": 3})
        );
        assert_eq!(
            page(&Pager::with_neighbours(asked, 0, vec![])),
            json!({"currentPage": 1, "prePage": 1, "nextPage": 0, "pageSize": 2, "offset": 0,
                   "totalPage": 0, "totalCount": 0})
        );
        assert_eq!(
            page(&Pager::plain(asked, 3, vec![1, 2])),
            json!({"currentPage": 1, "prePage": 0, "nextPage": 0, "pageSize": 2, "offset": 2,
                   "totalPage": 2, "totalCount": 3})
        );
        let second = query("currentPage=3&pageSize=2");
        assert_eq!(
            page(&Pager::whole(second, vec![1, 2, 3])),
            json!({"currentPage": 3, "prePage": 0, "nextPage": 0, "pageSize": 2, "offset": 4,
                   "totalPage": 0, "totalCount": 0})
        );
    }
}
