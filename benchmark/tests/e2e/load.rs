//! The load as a process of its own, as the measurements start it.

use std::path::Path;
use std::time::Duration;

use longmen_benchmark::client::Server;
use longmen_benchmark::load::Load;
use longmen_benchmark::origin::Origin;
use longmen_benchmark::process::Cores;

fn load(origin: &Origin, shape: &str) -> Load {
    Load {
        server: Server::parse(&origin.url()).expect("an address"),
        path: "/users/longmen/5000".into(),
        shape: shape.parse().expect("a shape"),
        limit: None,
    }
}

fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_longmen-bench")).parent().expect("the program is in a folder")
}

fn any_core() -> Cores {
    Cores("0-1023".into())
}

#[test]
fn a_process_sends_all_and_tells_what_came_of_it() {
    let origin = Origin::builder().start().expect("a free port on loopback");
    let run = load(&origin, "900/50").send_on(binaries(), &any_core()).expect("sent");
    assert_eq!((run.requests, run.errors), (900, 0));
    assert!(run.rate > 0.0 && run.p99_ms >= run.p50_ms, "{run:?}");
    assert_eq!((origin.requests(), origin.connections()), (900, 50));
}

#[test]
fn the_limit_reaches_the_process() {
    let origin = Origin::builder().start().expect("a free port on loopback");
    let load = Load { limit: Some(Duration::from_millis(50)), ..load(&origin, "100000000/4") };
    let run = load.send_on(binaries(), &any_core()).expect("sent");
    assert!(run.errors == 0 && (1..100_000_000).contains(&run.requests), "{run:?}");
}

#[test]
fn a_load_that_cannot_be_sent_says_why() {
    let origin = Origin::builder().start().expect("a free port on loopback");
    let server = Server::parse("http://localhost:1").expect("an address");
    let load = Load { server, ..load(&origin, "1/1") };
    let error = load.send_on(binaries(), &any_core()).expect_err("a name is no IP address");
    assert!(format!("{error:#}").contains("has no IP address"), "{error:#}");
}
