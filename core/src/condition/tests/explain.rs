//! The explanation agrees with the match and says why.

use super::{Request, compiler, condition};
use crate::condition::{ConditionField, Got};

#[test]
fn says_what_was_wanted_and_what_was_found() {
    let list = [
        condition("uri", "match", "/", " /a/** "),
        condition("header", "=", "X-Env", "prod"),
        condition("query", "isBlank", "q", ""),
        condition("header", ">", "n", "1"),
        condition("uri", "TimeBefore", "/", "2030-01-01 00:00:00"),
    ];
    let request = Request::get("/a/1").header("x-env", "test");
    for mode in [0, 1] {
        let compiled = compiler().compile(mode, &list).conditions;
        let outcomes = compiled.explain(&list, &request);
        let matched: Vec<bool> = outcomes.iter().map(|outcome| outcome.matched).collect();
        assert_eq!(matched, [true, false, true, false, true]);
        let live: Vec<usize> = outcomes.iter().filter(|o| !o.skipped).map(|o| o.index).collect();
        // Under OR the first settles it, under AND the second.
        assert_eq!(live, if mode == 1 { vec![0] } else { vec![0, 1] });
        assert_eq!(compiled.matches(&request), mode == 1);

        let wanted: Vec<&str> = outcomes.iter().map(|outcome| outcome.wanted.as_str()).collect();
        assert_eq!(
            wanted,
            [
                r#"uri match "/a/**""#,
                r#"header X-Env = "prod""#,
                "query q isBlank",
                r#"header n > "1""#,
                r#"uri TimeBefore "2030-01-01 00:00:00""#,
            ]
        );
        assert_eq!(outcomes[0].got, Got::Value("/a/1".to_owned()));
        assert_eq!(outcomes[1].got, Got::Value("test".to_owned()));
        assert_eq!(outcomes[2].got, Got::Missing);
        let Got::Unusable(fault) = &outcomes[3].got else { panic!("{:?}", outcomes[3]) };
        assert_eq!((fault.index, fault.field), (3, ConditionField::Operator));
        assert_eq!(outcomes[4].got, Got::Time(request.now));
    }
}
