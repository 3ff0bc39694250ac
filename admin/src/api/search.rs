//! The generic search that several lists offer beside their `GET`.

use longmen_db::Page;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::{Violations, lenient};
use crate::page::PageQuery;

/// Page numbers that a [`SearchPage`] offers for navigation, at most.
const NAVIGATE_PAGES: i64 = 8;

/// Which page of which rows is wanted.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", bound(deserialize = "C: Deserialize<'de>"))]
pub(crate) struct SearchRequest<C> {
    /// The page, from 1.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub page_num: Option<i32>,
    /// Rows of a page, from 1 to 1000.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub page_size: Option<i32>,
    /// Which rows; members that are absent do not narrow.
    #[schema(inline)]
    pub condition: Option<C>,
}

impl<C> SearchRequest<C> {
    /// The field rules.
    ///
    /// Source: ShenYu 2.7.1, rules of its paged search.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        rules.not_null("pageNum", self.page_num.as_ref());
        rules.min("pageNum", self.page_num, 1);
        rules.not_null("pageSize", self.page_size.as_ref());
        if self.page_size.is_some_and(|size| size > 1000) {
            rules.add("pageSize", "size max support is 1000");
        }
        if self.page_size.is_some_and(|size| size < 1) {
            rules.add("pageSize", "size min support is 1");
        }
        rules.not_null("condition", self.condition.as_ref());
    }

    /// The page that is wanted.
    #[must_use]
    pub(crate) fn page(&self) -> PageQuery {
        PageQuery::new(self.page_num, self.page_size)
    }
}

/// A page with everything a navigation bar needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchPage<T> {
    /// Rows of the whole list.
    total: i64,
    /// The rows.
    #[schema(inline)]
    list: Vec<T>,
    /// The page, from 1.
    page_num: i64,
    /// Rows of a page.
    page_size: i64,
    /// Rows of this page.
    size: i64,
    /// Rows before this page.
    start_row: i64,
    /// Rows up to the end of this page, were it full.
    end_row: i64,
    /// Pages of the whole list.
    pages: i64,
    /// The page before, 0 if there is none.
    pre_page: i64,
    /// The page after, 0 if there is none.
    next_page: i64,
    is_first_page: bool,
    is_last_page: bool,
    has_previous_page: bool,
    has_next_page: bool,
    /// Page numbers offered at most.
    navigate_pages: i64,
    /// The page numbers to offer.
    #[serde(rename = "navigatepageNums")]
    navigate_page_numbers: Vec<i64>,
    /// The first of them, 0 if there is none.
    navigate_first_page: i64,
    /// The last of them, 0 if there is none.
    navigate_last_page: i64,
}

impl<T> From<Page<T>> for SearchPage<T> {
    fn from(page: Page<T>) -> Self {
        let (number, page_size) = (page.request.current(), page.request.size());
        let pages = page.total_pages();
        let numbers = navigation(number, pages);
        Self {
            total: page.total,
            size: i64::try_from(page.rows.len()).unwrap_or(i64::MAX),
            list: page.rows,
            page_num: number,
            page_size,
            start_row: page.request.offset(),
            end_row: page.request.offset().saturating_add(page_size),
            pages,
            pre_page: if number > 1 { number - 1 } else { 0 },
            next_page: if number < pages { number + 1 } else { 0 },
            is_first_page: number == 1,
            is_last_page: number == pages || pages == 0,
            has_previous_page: number > 1,
            has_next_page: number < pages,
            navigate_pages: NAVIGATE_PAGES,
            navigate_first_page: numbers.first().copied().unwrap_or(0),
            navigate_last_page: numbers.last().copied().unwrap_or(0),
            navigate_page_numbers: numbers,
        }
    }
}

/// At most [`NAVIGATE_PAGES`] page numbers around `number`.
fn navigation(number: i64, pages: i64) -> Vec<i64> {
    let latest_start = (pages - NAVIGATE_PAGES + 1).max(1);
    let first = (number - NAVIGATE_PAGES / 2).clamp(1, latest_start);
    (first..=pages.min(first + NAVIGATE_PAGES - 1)).collect()
}

#[cfg(test)]
mod tests {
    use longmen_db::PageRequest;
    use serde_json::json;

    use super::*;

    fn page(number: i64, total: i64) -> SearchPage<i32> {
        SearchPage::from(Page { request: PageRequest::new(number, 2), rows: vec![1, 2], total })
    }

    #[test]
    fn the_recorded_page() {
        assert_eq!(
            serde_json::to_value(page(1, 5)).unwrap(),
            json!({"total": 5, "list": [1, 2], "pageNum": 1, "pageSize": 2, "size": 2,
                   "startRow": 0, "endRow": 2, "pages": 3, "prePage": 0, "nextPage": 2,
                   "isFirstPage": true, "isLastPage": false, "hasPreviousPage": false,
                   "hasNextPage": true, "navigatePages": 8, "navigatepageNums": [1, 2, 3],
                   "navigateFirstPage": 1, "navigateLastPage": 3})
        );
    }

    #[test]
    fn navigation_stays_within_the_pages() {
        for (number, pages, first, last) in
            [(1, 20, 1, 8), (10, 20, 6, 13), (20, 20, 13, 20), (5, 6, 1, 6), (99, 6, 1, 6)]
        {
            let numbers = navigation(number, pages);
            assert_eq!((numbers[0], numbers[numbers.len() - 1]), (first, last), "{number}/{pages}");
        }
        assert_eq!(navigation(1, 0), Vec::<i64>::new());
    }

    #[test]
    fn limits_of_a_search() {
        let search: SearchRequest<()> =
            serde_json::from_value(json!({"pageNum": 0, "pageSize": 1001})).unwrap();
        let mut rules = Violations::new();
        search.rules(&mut rules);
        assert_eq!(
            rules.into_body_result().unwrap_err().client_message(),
            "Request error! invalid argument [pageNum: must be greater than or equal to 1| \
             pageSize: size max support is 1000| condition: must not be null]"
        );
    }
}
