//! Search texts, lists of ids and paging that must not trip either store.

use std::collections::HashSet;

use longmen_core::model::{Rule, Selector};
use longmen_db::repository::conditioned::{self, ObjectFilter};
use longmen_db::repository::{rule, selector};
use longmen_db::{Error, Keyword, MAX_FILTER_IDS, PageRequest};

use crate::support::{NS, TestStore, add_selector, new_rule, new_selector, on_both_stores};

on_both_stores!(
    search_text_is_literal,
    lists_of_ids_of_any_length_work,
    pages_hold_every_row_once,
    names_of_any_script_are_kept_and_sorted_by_bytes,
);

async fn found(test: &TestStore, keyword: &str) -> Vec<String> {
    let mut tx = test.store.read().await.unwrap();
    let filter = ObjectFilter { keyword: Keyword::parse(keyword), ..ObjectFilter::default() };
    let page =
        conditioned::page::<Selector>(&mut tx, &filter, PageRequest::new(1, 100)).await.unwrap();
    assert_eq!(usize::try_from(page.total).unwrap(), page.rows.len());
    page.rows.into_iter().map(|row| row.object.name.unwrap()).collect()
}

/// C-33: `%`, `_`, `'`, `\` and emoji are what they are.
async fn search_text_is_literal(test: TestStore) {
    let mut uow = test.begin().await;
    let names =
        ["100%", "1000", "a_b", "aXb", "o'clock", r"back\slash", "🚀 rocket", "Orders", "ÉTÉ Ünï"];
    for name in names {
        add_selector(&mut uow, name).await;
    }
    uow.commit().await.unwrap();
    for (keyword, expected) in [
        ("%", vec!["100%"]),
        ("0%", vec!["100%"]),
        ("_", vec!["a_b"]),
        ("'", vec!["o'clock"]),
        (r"\", vec![r"back\slash"]),
        ("🚀", vec!["🚀 rocket"]),
        ("ORDERS", vec!["Orders"]),
        ("orders", vec!["Orders"]),
        ("'; DROP TABLE rule; --", vec![]),
        ("100!%", vec!["1000"]),
        // Only the case of ASCII letters does not count.
        ("É", vec!["ÉTÉ Ünï"]),
        ("Étÿ", vec![]),
        ("ÉtÉ ÜN", vec!["ÉTÉ Ünï"]),
        ("été", vec![]),
        ("", names.to_vec()),
    ] {
        assert_eq!(found(&test, keyword).await, expected, "{keyword}");
    }
}

async fn lists_of_ids_of_any_length_work(test: TestStore) {
    let mut uow = test.begin().await;
    let mut ids = Vec::new();
    for n in 0..1003 {
        ids.push(add_selector(&mut uow, &format!("s{n}")).await);
    }
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    assert_eq!(conditioned::find_many::<Selector>(&mut tx, &ids).await.unwrap().len(), 1003);
    assert_eq!(conditioned::find_many::<Selector>(&mut tx, &[""; 0]).await.unwrap(), []);
    let request = PageRequest::new(1, 12);
    let filter = ObjectFilter { owner_ids: ids.clone(), ..ObjectFilter::default() };
    assert_eq!(conditioned::page::<Rule>(&mut tx, &filter, request).await.unwrap().total, 0);
    // As many as may be: no store has a limit below it. One more is refused by name.
    let most: Vec<String> = (0..MAX_FILTER_IDS).map(|n| n.to_string()).collect();
    let mut filter = ObjectFilter { owner_ids: most, ..ObjectFilter::default() };
    assert_eq!(conditioned::page::<Rule>(&mut tx, &filter, request).await.unwrap().total, 0);
    filter.owner_ids.push("more".to_owned());
    let refused = conditioned::page::<Rule>(&mut tx, &filter, request).await.unwrap_err();
    assert!(matches!(refused, Error::TooManyIds { .. }), "{refused}");
    drop(tx);

    let mut uow = test.begin().await;
    assert_eq!(conditioned::set_enabled::<Selector>(&mut uow, &[""; 0], false).await.unwrap(), 0);
    // Ids that repeat count once, those that nobody has not at all.
    let mut odd = ids.clone();
    odd.extend(["nope".to_owned(), ids[0].clone()]);
    assert_eq!(conditioned::set_enabled::<Selector>(&mut uow, &odd, false).await.unwrap(), 1003);
    assert_eq!(selector::delete(&mut uow, &odd).await.unwrap().selectors.len(), 1003);
    assert_eq!(selector::delete::<&str>(&mut uow, &[]).await.unwrap().selectors.len(), 0);
    uow.commit().await.unwrap();
}

/// C-34: 1,005 rules that nothing but their id tells apart, and rows that come in between.
async fn pages_hold_every_row_once(test: TestStore) {
    let mut uow = test.begin().await;
    let selector_id = add_selector(&mut uow, "orders").await;
    let mut ids = HashSet::new();
    for n in 0..1005 {
        let id = uow.next_id().unwrap();
        rule::insert(&mut uow, &new_rule(&id, &selector_id, &format!("r{n}"), 1), &[])
            .await
            .unwrap();
        ids.insert(id);
    }
    uow.commit().await.unwrap();

    let filter = ObjectFilter { namespace_id: Some(NS.to_owned()), ..ObjectFilter::default() };
    let mut seen = Vec::new();
    for current in 1..=21 {
        let mut tx = test.store.read().await.unwrap();
        let page = conditioned::page::<Rule>(&mut tx, &filter, PageRequest::new(current, 50))
            .await
            .unwrap();
        assert_eq!(page.total, 1005 + current - 1);
        assert_eq!(page.total_pages(), (1005 + current - 1 + 49) / 50);
        seen.extend(page.rows.into_iter().map(|row| row.object.id));
        drop(tx);
        // Behind all others, so it shifts nothing.
        let mut uow = test.begin().await;
        let id = uow.next_id().unwrap();
        rule::insert(&mut uow, &new_rule(&id, &selector_id, "late", 2), &[]).await.unwrap();
        uow.commit().await.unwrap();
    }
    let unique: HashSet<String> = seen.iter().cloned().collect();
    assert_eq!(unique.len(), seen.len(), "no row twice");
    assert!(ids.is_subset(&unique), "no row missing");

    let mut tx = test.store.read().await.unwrap();
    let beyond =
        conditioned::page::<Rule>(&mut tx, &filter, PageRequest::new(1000, 50)).await.unwrap();
    assert_eq!((beyond.rows.len(), beyond.total), (0, 1026));
    let all =
        conditioned::page::<Rule>(&mut tx, &filter, PageRequest::new(0, 100_000)).await.unwrap();
    assert_eq!(all.rows.len(), 1026);
}

async fn names_of_any_script_are_kept_and_sorted_by_bytes(test: TestStore) {
    let mut uow = test.begin().await;
    // A locale would put "a" before "B" and "ä" beside it.
    for id in ["b", "B", "a", "ä", "_", "10", "9"] {
        selector::insert(&mut uow, &new_selector(id, "同名 ñ", 7), &[]).await.unwrap();
    }
    uow.commit().await.unwrap();
    let mut tx = test.store.read().await.unwrap();
    let page =
        conditioned::page::<Selector>(&mut tx, &ObjectFilter::default(), PageRequest::new(1, 100))
            .await
            .unwrap();
    let ids: Vec<&str> = page.rows.iter().map(|row| row.object.id.as_str()).collect();
    assert_eq!(ids, ["10", "9", "B", "_", "a", "b", "ä"]);
    assert!(page.rows.iter().all(|row| row.object.name.as_deref() == Some("同名 ñ")));
}
