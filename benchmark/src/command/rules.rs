//! `longmen-bench rules`: a rule among 10,000, beside one that is alone.

use std::time::Duration;

use anyhow::ensure;

use super::block_on;
use super::shared::{Results, SettingArgs};
use crate::report::Circumstances;
use crate::route_set::RouteSet;
use crate::rules::{Plan, measure};

/// Arguments of `longmen-bench rules`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How the rules are made.
    #[arg(long, value_enum, default_value = "static")]
    set: RouteSet,
    /// The number of rules to compare with one.
    #[arg(long, default_value_t = 10_000)]
    rules: u32,
    /// Connections of the load.
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Length of one measurement in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Rounds; each asks for every rule once.
    #[arg(long, default_value_t = 11)]
    rounds: u32,
    #[command(flatten)]
    setting: SettingArgs,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, measures, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started or measured, or a request went wrong.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let (plan, results) = args.plan()?;
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    results.write("rules", &circumstances, &result)?;
    ensure!(result.errors() == 0, "some requests failed; see the table");
    Ok(())
}

impl Args {
    fn plan(self) -> anyhow::Result<(Plan, Results)> {
        let plan = Plan {
            setting: self.setting.setting()?,
            set: self.set,
            rules: self.rules,
            connections: self.connections,
            time: Duration::from_secs(self.seconds.into()),
            rounds: self.rounds,
        };
        Ok((plan, self.results))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn plan(arguments: &[&str]) -> Plan {
        let command = Command::try_parse_from([&["rules"][..], arguments].concat());
        command.expect("arguments").args.plan().expect("a plan").0
    }

    #[test]
    fn the_defaults_are_those_of_the_budget() {
        let plan = plan(&[]);
        assert_eq!((plan.set, plan.rules, plan.connections), (RouteSet::Static, 10_000, 16));
        assert_eq!((plan.rounds, plan.time), (11, Duration::from_secs(3)));
    }

    #[test]
    fn nothing_to_measure_is_refused_before_anything_starts() {
        for (arguments, expected) in [
            (["--rules", "1"], "rules: expected at least 2"),
            (["--rounds", "0"], "rounds: expected at least 1"),
            (["--connections", "0"], "connections: expected at least 1"),
            (["--seconds", "0"], "seconds: expected at least 1"),
        ] {
            let error = block_on(measure(&plan(&arguments))).expect_err("nothing to measure");
            assert_eq!(error.to_string(), expected);
        }
    }
}
