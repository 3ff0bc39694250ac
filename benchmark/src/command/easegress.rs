//! `longmen-bench easegress`: one of 10,000 routes, looked up in order and by the index.

use std::time::Duration;

use anyhow::ensure;

use super::block_on;
use super::shared::{Results, SettingArgs};
use crate::easegress::{Plan, measure};
use crate::load::Shape;
use crate::report::Circumstances;
use crate::route_set::RouteSet;

/// Arguments of `longmen-bench easegress`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sets of routes, each measured by itself.
    #[arg(
        long = "set",
        value_enum,
        value_delimiter = ',',
        default_value = "static,prefix,variable"
    )]
    sets: Vec<RouteSet>,
    /// Routes of a set.
    #[arg(long, default_value_t = 10_000)]
    routes: u32,
    /// The number of the route to ask for, from 1; the middle one when absent.
    #[arg(long)]
    asked: Option<u32>,
    /// Loads, each as requests/connections.
    #[arg(long = "shape", value_delimiter = ',', default_value = "900/50,90000/100,90000/120")]
    shapes: Vec<Shape>,
    /// When a load ends although requests are left, in milliseconds; 0: when all are sent.
    #[arg(long, default_value_t = 1_500)]
    limit_ms: u64,
    /// Rounds; each sends every load to every gateway once.
    #[arg(long, default_value_t = 6)]
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
    results.write("easegress", &circumstances, &result)?;
    ensure!(result.errors() == 0, "some requests failed; see the table");
    Ok(())
}

impl Args {
    fn plan(self) -> anyhow::Result<(Plan, Results)> {
        let plan = Plan {
            setting: self.setting.setting()?,
            sets: self.sets,
            routes: self.routes,
            asked: self.asked.unwrap_or_else(|| u32::midpoint(1, self.routes)),
            shapes: self.shapes,
            limit: (self.limit_ms > 0).then(|| Duration::from_millis(self.limit_ms)),
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

    fn plan(arguments: &[&str]) -> anyhow::Result<Plan> {
        let command = Command::try_parse_from([&["easegress"][..], arguments].concat())?;
        Ok(command.args.plan()?.0)
    }

    #[test]
    fn the_defaults_are_what_was_published() {
        let plan = plan(&[]).expect("defaults");
        assert_eq!(plan.sets, [RouteSet::Static, RouteSet::Prefix, RouteSet::Variable]);
        assert_eq!((plan.routes, plan.asked), (10_000, 5_000));
        let shapes: Vec<_> = plan.shapes.iter().map(ToString::to_string).collect();
        assert_eq!(shapes, ["900/50", "90000/100", "90000/120"]);
        let longest = plan.limit.expect("a limit")
            * plan.rounds
            * u32::try_from(plan.sets.len() * plan.shapes.len() * 3).expect("few");
        assert!(longest < Duration::from_secs(4 * 60 + 10), "{longest:?}");
        assert!(plan.rounds >= 6, "fewer have no interval");
    }

    #[test]
    fn everything_can_be_chosen() {
        let arguments = "--set variable --routes 100 --asked 7 --shape 10/2,20/4 --limit-ms 0 \
                         --rounds 1 --proxy-cores 2-3 --other-cores 4 --setup-connections 8 --binaries /bin";
        let plan = plan(&arguments.split_whitespace().collect::<Vec<_>>()).expect("arguments");
        assert_eq!(plan.sets, [RouteSet::Variable]);
        assert_eq!((plan.routes, plan.asked, plan.rounds, plan.limit), (100, 7, 1, None));
        assert_eq!(plan.shapes[1], Shape { requests: 20, connections: 4 });
        assert_eq!(plan.setting.proxy_cores.0, "2-3");
        assert_eq!(plan.setting.other_cores.0, "4");
        assert_eq!(plan.setting.setup_connections, 8);
        assert_eq!(plan.setting.binaries, std::path::Path::new("/bin"));
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, expected) in [
            (["--set", "regex"], "static, prefix, variable"),
            (["--shape", "900"], "expected requests/connections such as 90000/100"),
        ] {
            let error = plan(&arguments).expect_err("a mistake").to_string();
            assert!(error.contains(expected) && error.contains(arguments[1]), "{error}");
        }
        let wrong = plan(&["--routes", "10", "--asked", "11"]).expect("arguments");
        let error = block_on(measure(&wrong)).expect_err("no such route").to_string();
        assert_eq!(error, "asked: expected one of the routes 1 to 10, found 11");
    }
}
