//! From text conditions to predicates.

use http::HeaderName;
use jiff::tz::TimeZone;

use super::fault::{CompileFault, ConditionField};
use super::path_pattern::PatternFault;
use super::predicate::{Predicate, Source, Test};
use super::regexes::{Flavour, Regexes};
use super::time::{TIME_FORMAT, instant, parse_civil};
use super::validate::stock_regex_text;
use super::{AntPattern, CompiledConditions, ContextField, PathPattern};
use crate::model::Condition;

/// The operators that can be used.
const OPERATORS: &str = "match, =, regex, contains, startsWith, endsWith, exclude, pathPattern, \
                         isBlank, TimeBefore or TimeAfter";
/// The parameter types that can be used.
const PARAM_TYPES: &str = "uri, header, query, cookie, req_method, domain, host, ip or post";

/// Compiles conditions; shares what they have in common.
///
/// Keep one per snapshot builder: regular expressions are compiled once per text and handed out to
/// every later snapshot that still uses them.
#[derive(Debug)]
pub struct Compiler {
    zone: TimeZone,
    regexes: Regexes,
}

/// What became of a list of conditions.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The conditions, in order; those with a fault never hold.
    pub conditions: CompiledConditions,
    /// At most one fault a condition, in order.
    pub faults: Vec<CompileFault>,
}

impl Compiler {
    /// Makes a compiler for times that are local to `zone`.
    #[must_use]
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, regexes: Regexes::new() }
    }

    /// How many different regular expressions are kept.
    #[must_use]
    pub fn regex_count(&self) -> usize {
        self.regexes.len()
    }

    /// Compiles the conditions of one selector or rule; `match_mode` is the wire code.
    #[must_use]
    pub fn compile(&mut self, match_mode: i32, conditions: &[Condition]) -> Compiled {
        let mut faults = Vec::new();
        let predicates = conditions.iter().enumerate().map(|(index, condition)| {
            let (source, test) = self.predicate(condition);
            let test = test.unwrap_or_else(|fault| {
                let fault = fault.at(index);
                faults.push(fault.clone());
                Test::Never(Box::new(fault))
            });
            Predicate { source, test }
        });
        let conditions = CompiledConditions::new(match_mode, predicates.collect());
        Compiled { conditions, faults }
    }

    /// Compiles one Ant pattern that stands outside a condition.
    ///
    /// # Errors
    /// What a path pattern would have to look like.
    pub fn ant_pattern(&mut self, pattern: &str) -> Result<AntPattern, String> {
        AntPattern::compile(pattern, &mut self.regexes).map_err(|fault| fault.0)
    }

    /// The source is known even where the test is at fault, so that it can be told whether an
    /// unusable condition is about the path.
    fn predicate(&mut self, condition: &Condition) -> (Source, Result<Test, CompileFault>) {
        let source = match source(condition) {
            Ok(source) => source,
            Err(fault) => return (Source::Nothing, Err(fault)),
        };
        let test = self.test(condition, &source);
        (source, test)
    }

    fn test(&mut self, condition: &Condition, source: &Source) -> Result<Test, CompileFault> {
        let on_path = *source == Source::Path;
        let text = |value: String| value.into_boxed_str();
        Ok(match condition.operator.as_str() {
            "isBlank" => Test::IsBlank,
            _ if *source == Source::Nothing && !is_time(&condition.operator) => {
                return Err(name_fault(condition));
            }
            "match" if on_path => Test::Ant(self.ant(condition)?),
            "exclude" if on_path => Test::NotAnt(self.ant(condition)?),
            "pathPattern" if on_path => {
                let pattern = value(condition)?;
                let compiled = PathPattern::compile(pattern, &mut self.regexes);
                Test::PathPattern(Box::new(compiled.map_err(|f| pattern_fault(condition, f))?))
            }
            "match" | "pathPattern" | "contains" => {
                Test::Contains(text(folded(value(condition)?, source)))
            }
            "exclude" => Test::NotContains(text(folded(value(condition)?, source))),
            "=" => Test::Equals(text(folded(value(condition)?, source))),
            "startsWith" => Test::StartsWith(text(folded(value(condition)?, source))),
            "endsWith" => Test::EndsWith(text(folded(value(condition)?, source))),
            "regex" => {
                let flavour = Flavour { dot_all: false, any_case: *source == Source::Domain };
                let pattern = value(condition)?;
                let regex = self.regexes.whole(pattern, flavour).map_err(|fault| {
                    let expected = format!("a regular expression (RE2 syntax): {}", fault.0);
                    value_fault(condition, expected).with_stock(stock_regex_text(pattern))
                })?;
                Test::Regex(regex)
            }
            operator if is_time(operator) => self.time_test(condition, source)?,
            _ => {
                let operator = Some(condition.operator.as_str());
                let expected = format!("one of {OPERATORS}");
                return Err(CompileFault::new(ConditionField::Operator, operator, expected));
            }
        })
    }

    /// The patterns of `match` and `exclude`: several may stand in one value, divided by commas.
    fn ant(&mut self, condition: &Condition) -> Result<Box<[AntPattern]>, CompileFault> {
        split_patterns(value(condition)?)
            .map(|pattern| {
                AntPattern::compile(pattern, &mut self.regexes).map_err(|fault| {
                    let expected = format!("a path pattern: {}", fault.0);
                    value_fault(condition, expected)
                })
            })
            .collect()
    }

    fn time_test(&self, condition: &Condition, source: &Source) -> Result<Test, CompileFault> {
        let wrong = || value_fault(condition, format!("a time as {TIME_FORMAT}"));
        let limit = parse_civil(value(condition)?).ok_or_else(wrong)?;
        let before = condition.operator == "TimeBefore";
        let unnamed = condition.param_name.as_deref().is_none_or(|name| name.trim().is_empty());
        if *source != Source::Path && !unnamed {
            return Ok(if before { Test::ValueBefore(limit) } else { Test::ValueAfter(limit) });
        }
        let limit = instant(limit, &self.zone).ok_or_else(wrong)?;
        Ok(if before { Test::NowBefore(limit) } else { Test::NowAfter(limit) })
    }
}

fn is_time(operator: &str) -> bool {
    matches!(operator, "TimeBefore" | "TimeAfter")
}

/// Where the value of a condition comes from; `Nothing` when its name can name no value.
fn source(condition: &Condition) -> Result<Source, CompileFault> {
    let name = condition.param_name.as_deref().unwrap_or_default();
    let named = |source: Source| if name.is_empty() { Source::Nothing } else { source };
    Ok(match condition.param_type.as_str() {
        "uri" => Source::Path,
        "header" => match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => Source::Header(Box::new(name)),
            Err(_) => Source::Nothing,
        },
        "query" => named(Source::Query(name.into())),
        "cookie" => named(Source::Cookie(name.into())),
        "req_method" => Source::Method,
        "domain" => Source::Domain,
        "host" => Source::Host,
        "ip" => Source::Ip,
        "post" => ContextField::from_name(name).map_or(Source::Nothing, Source::Context),
        other => {
            let expected = format!("one of {PARAM_TYPES}");
            return Err(CompileFault::new(ConditionField::ParamType, Some(other), expected));
        }
    })
}

/// The trimmed value.
///
/// # Errors
/// It is absent or blank: such a condition would hold for nothing or for everything.
fn value(condition: &Condition) -> Result<&str, CompileFault> {
    // The reference trims what its platform calls white space: everything up to the blank.
    let trimmed = condition.param_value.as_deref().map(|value| value.trim_matches(|c| c <= ' '));
    match trimmed {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(value_fault(condition, "a text that is not blank".to_owned())),
    }
}

/// The value as compared: host names in lower case.
fn folded(value: &str, source: &Source) -> String {
    if *source == Source::Domain { value.to_ascii_lowercase() } else { value.to_owned() }
}

fn value_fault(condition: &Condition, expected: String) -> CompileFault {
    CompileFault::new(ConditionField::ParamValue, condition.param_value.as_deref(), expected)
}

fn name_fault(condition: &Condition) -> CompileFault {
    let expected = match condition.param_type.as_str() {
        "header" => "the name of a header".to_owned(),
        "query" => "the name of a query parameter".to_owned(),
        "cookie" => "the name of a cookie".to_owned(),
        _ => format!("one of {}", ContextField::ALL.map(ContextField::name).join(", ")),
    };
    CompileFault::new(ConditionField::ParamName, condition.param_name.as_deref(), expected)
}

fn pattern_fault(condition: &Condition, fault: PatternFault) -> CompileFault {
    let expected = format!("a path pattern: {}", fault.text);
    value_fault(condition, expected).with_stock(fault.stock.then_some(fault.text))
}

/// Divides at commas that stand outside braces; blank parts do not count.
fn split_patterns(value: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    value
        .split(move |c| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            c == ',' && depth <= 0
        })
        .map(str::trim)
        .filter(|pattern| !pattern.is_empty())
}
