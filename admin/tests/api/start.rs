//! Starts that cannot go well: the admin's program without its database, `make run` without a port.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;
use tokio::time::timeout;

/// Nothing here takes longer, or it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Whether the program went well, and all that it said, each line with the time since its start.
async fn said(arguments: &[&str], url: &str) -> (bool, Vec<(Duration, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_longmen-admin"))
        .args(arguments)
        .args(["--server.port=0", "--server.address=127.0.0.1"])
        .arg("--spring.datasource.hikari.connection-timeout=4000")
        .env("DATABASE_URL", url)
        .current_dir(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let lines = BufReader::new(program.stderr.take().unwrap()).lines();
    let read = tokio::task::spawn_blocking(move || {
        lines.map(|line| (begun.elapsed(), line.unwrap())).collect::<Vec<_>>()
    });
    let Ok(said) = timeout(DEADLINE, read).await else {
        program.kill().unwrap();
        panic!("the program does not end");
    };
    (program.wait().unwrap().success(), said.unwrap())
}

/// Port and socket of an address that refuses connections for as long as the socket is held.
fn closed_port() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (socket.local_addr().unwrap().port(), socket)
}

#[tokio::test]
async fn a_database_out_of_reach_is_told_at_once_and_once_more_at_the_end() {
    let (port, _held) = closed_port();
    let url = format!("postgres://gw:s3cret@127.0.0.1:{port}/gateway");
    for arguments in [&[][..], &["restore-mark"]] {
        let (well, said) = said(arguments, &url).await;
        assert!(!well);
        assert!(said.iter().all(|(_, line)| !line.contains("s3cret")), "{said:?}");
        let place = format!("PostgreSQL database gateway at 127.0.0.1:{port}");
        let about: Vec<&(Duration, String)> =
            said.iter().filter(|(_, line)| line.contains(&place)).collect();
        let [(first, waits), (last, gave_up)] = about[..] else { panic!("{said:?}") };
        let text = format!("waiting for the {place}: connection refused; giving up in 4 s");
        assert!(waits.contains("WARN") && waits.contains(&text), "{waits}");
        // Long before the end, whatever the load.
        assert!(*last >= *first + Duration::from_secs(2), "{said:?}");
        assert_eq!(
            *gave_up,
            format!(
                "longmen-admin: open the {place}: it cannot be reached within 4 s: connection refused"
            )
        );
        assert_eq!(said.last().unwrap().1, *gave_up, "nothing follows");
    }
}

#[tokio::test]
async fn a_database_that_says_nothing_is_told_before_the_patience_is_over() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (well, said) = said(&[], &format!("postgres://gw:s3cret@127.0.0.1:{port}/gateway")).await;
    assert!(!well);
    let waits = said.iter().find(|(_, line)| line.contains("waiting for the")).expect("a word");
    assert!(waits.1.contains("no answer so far; giving up in 3 s"), "{said:?}");
    let end = &said.last().unwrap().1;
    assert!(end.contains("it cannot be reached within 4 s: no answer"), "{end}");
}

#[tokio::test]
async fn make_run_names_the_port_its_holder_and_the_variable() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let run = move || {
        Command::new("bash")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/run.sh"))
            .env("LONGMEN_ADMIN_PORT", port.to_string())
            .output()
            .unwrap()
    };
    let output = timeout(DEADLINE, tokio::task::spawn_blocking(run)).await.unwrap().unwrap();
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "run: port {port} for the admin is taken by {} (process {}); stop that, or choose \
             another port: LONGMEN_ADMIN_PORT=<port> make run\n",
            name.trim_end(),
            std::process::id()
        )
    );
    assert_eq!(output.status.code(), Some(1));
}
