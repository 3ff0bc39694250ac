//! HTTP/2 to upstreams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use longmen_core::body::Body;
use longmen_core::error::Reason;
use longmen_core::upstream::{ClientOptions, Endpoint, PoolLimit, PoolOptions};
use tokio::join;

use crate::support::origin::{Origin, Stream};
use crate::support::{
    Rig, Strategy, error, get, pattern, read, request, streamed, text, until, within,
};
use crate::tls;

conformance! {
    grpc_without_tls, requests_share_a_connection, offered_over_tls, declined_over_tls,
    goodbyes, streams_that_were_refused, resets, abandoned_streams, within_a_fixed_pool,
}

type Server = Connection<Stream, Bytes>;
type Call = (Request<h2::RecvStream>, SendResponse<Bytes>);

async fn accept(origin: &Origin) -> Server {
    let stream = origin.accept().await.into_stream();
    within(h2::server::handshake(stream)).await.unwrap()
}

async fn next(server: &mut Server) -> Call {
    within(server.accept()).await.expect("a request").unwrap()
}

/// Drives a connection until the client ends it.
fn keep(mut server: Server) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { while let Some(Ok(_)) = server.accept().await {} })
}

fn answer(respond: &mut SendResponse<Bytes>, text: &'static str) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(Bytes::from(text), true).unwrap();
}

fn grpc(endpoint: &Endpoint, path: &str, body: Body) -> Request<Body> {
    let mut sent = request(endpoint, "POST", path, body);
    sent.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc+proto"));
    sent.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    sent
}

async fn grpc_without_tls(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let upstream = async {
        let mut server = accept(&origin).await;
        let (call, mut respond) = next(&mut server).await;
        let driving = keep(server);
        assert_eq!(call.uri().to_string(), format!("http://{}/pkg.S/M?q", origin.url()));
        assert_eq!(call.headers()["te"], "trailers");
        assert!(!call.headers().contains_key("host"));
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        let mut incoming = call.into_body();
        // Message by message: each answer comes before the next is sent.
        for part in ["one", "two"] {
            frames.send(Ok(Frame::data(Bytes::from(part)))).await.unwrap();
            let got = within(incoming.data()).await.unwrap().unwrap();
            assert_eq!(got, part);
            stream.send_data(got, false).unwrap();
        }
        drop(frames);
        // The end may come with a frame of its own, without bytes.
        while let Some(part) = within(incoming.data()).await {
            assert!(part.unwrap().is_empty());
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        stream.send_trailers(trailers).unwrap();
        driving
    };
    let client = async {
        let response = rig.send(&endpoint, grpc(&endpoint, "/pkg.S/M?q", body)).await.unwrap();
        within(response.into_body().collect()).await.unwrap()
    };
    let (collected, driving) = join!(client, upstream);
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(collected.to_bytes(), "onetwo");
    assert_eq!(rig.stats().target_rewritten, u64::from(!rig.is_hyper()));
    drop(rig);
    within(driving).await.unwrap();
}

async fn requests_share_a_connection(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut server = accept(&origin).await;
        let mut calls = Vec::new();
        for _ in 0..20 {
            calls.push(next(&mut server).await);
        }
        for (_, respond) in &mut calls {
            answer(respond, "ok");
        }
        (keep(server), calls)
    };
    let calls = (0..20).map(|_| async {
        text(rig.send(&endpoint, grpc(&endpoint, "/", Body::from("m"))).await.unwrap()).await
    });
    let (answers, _upstream) = join!(futures_util::future::join_all(calls), upstream);
    assert!(answers.iter().all(|answer| answer == "ok"));
    assert_eq!((rig.stats().opened, rig.stats().reused), (1, 19));
}

fn offering() -> ClientOptions {
    ClientOptions { http2: true, ..tls::options(tls::trusted()) }
}

fn secure(rig: &Rig, origin: &Origin) -> Arc<Endpoint> {
    rig.endpoint(&format!("https://upstream.test:{}", origin.address().port()))
}

async fn offered_over_tls(strategy: Strategy) {
    let rig = Rig::with_names(strategy, offering(), Arc::new(tls::Local));
    let origin = Origin::with_tls(tls::server(false, &["h2", "http/1.1"])).await;
    let endpoint = secure(&rig, &origin);
    let body = pattern(1 << 20);
    let upstream = async {
        let mut server = accept(&origin).await;
        for _ in 0..2 {
            let (call, mut respond) = next(&mut server).await;
            assert_eq!(call.uri().authority().unwrap().as_str(), endpoint.host.to_str().unwrap());
            assert!(!call.headers().contains_key("host"));
            assert!(!call.headers().contains_key("connection"));
            answer(&mut respond, "over h2");
        }
        // The upload is larger than the window: it is let through as it is read.
        let (call, mut respond) = next(&mut server).await;
        let driving = keep(server);
        let mut incoming = call.into_body();
        let mut received = Vec::new();
        while let Some(part) = within(incoming.data()).await {
            let part = part.unwrap();
            incoming.flow_control().release_capacity(part.len()).unwrap();
            received.extend_from_slice(&part);
        }
        answer(&mut respond, "uploaded");
        (received, driving)
    };
    let client = async {
        for _ in 0..2 {
            let response = rig.send(&endpoint, get(&endpoint, "/")).await.unwrap();
            assert_eq!(response.version(), http::Version::HTTP_11);
            assert_eq!(text(response).await, "over h2");
        }
        let sent = request(&endpoint, "POST", "/", Body::from(body.clone()));
        assert_eq!(text(rig.send(&endpoint, sent).await.unwrap()).await, "uploaded");
    };
    let ((), (received, _driving)) = join!(client, upstream);
    assert!(received == body);
    assert_eq!((rig.stats().opened, rig.stats().reused), (1, 2));
    assert_eq!(rig.stats().target_rewritten, 0);
}

async fn declined_over_tls(strategy: Strategy) {
    let rig = Rig::with_names(strategy, offering(), Arc::new(tls::Local));
    let origin = Origin::with_tls(tls::server(false, &["http/1.1"])).await;
    let endpoint = secure(&rig, &origin);
    let upstream = async {
        let mut conn = origin.accept().await;
        for _ in 0..2 {
            assert_eq!(conn.request().await.line(), "GET / HTTP/1.1");
            conn.answer("over h1").await;
        }
        conn
    };
    let client = async {
        for _ in 0..2 {
            let response = rig.send(&endpoint, get(&endpoint, "/")).await.unwrap();
            assert_eq!(text(response).await, "over h1");
        }
    };
    let ((), _conn) = join!(client, upstream);
    assert_eq!((rig.stats().opened, rig.stats().reused), (1, 1));
    // gRPC is not possible there.
    let call = rig.send(&endpoint, grpc(&endpoint, "/", Body::empty()));
    let (result, _conn) = join!(call, origin.accept());
    assert_eq!(error(result).reason(), Reason::UpstreamProtocol);
}

async fn goodbyes(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut server = accept(&origin).await;
        let (_, mut slow) = next(&mut server).await;
        // No more requests, but this one is finished.
        server.graceful_shutdown();
        let mut driving = keep(server);
        // The GOAWAY is out once the client opens another connection for its next request.
        let mut second = accept(&origin).await;
        let (_, mut respond) = next(&mut second).await;
        answer(&mut respond, "second");
        let other = keep(second);
        answer(&mut slow, "first");
        within(&mut driving).await.unwrap();
        other
    };
    let calls = async {
        let first = async {
            text(rig.send(&endpoint, grpc(&endpoint, "/1", Body::empty())).await.unwrap()).await
        };
        let second = async {
            until("the first has left", || rig.factory.stats().iter().any(|h| h.opened == 1)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            text(rig.send(&endpoint, grpc(&endpoint, "/2", Body::empty())).await.unwrap()).await
        };
        join!(first, second)
    };
    let ((first, second), _other) = join!(calls, upstream);
    assert_eq!((&*first, &*second), ("first", "second"));
}

async fn streams_that_were_refused(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut server = accept(&origin).await;
        let (_, mut respond) = next(&mut server).await;
        respond.send_reset(h2::Reason::REFUSED_STREAM);
        let (call, mut respond) = next(&mut server).await;
        let driving = keep(server);
        let mut body = call.into_body();
        assert_eq!(within(body.data()).await.unwrap().unwrap(), "message");
        answer(&mut respond, "now");
        driving
    };
    let sent = grpc(&endpoint, "/", Body::from("message"));
    let (response, _driving) = join!(rig.send(&endpoint, sent), upstream);
    assert_eq!(text(response.unwrap()).await, "now", "it was not touched: also a POST comes again");
}

async fn resets(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut server = accept(&origin).await;
        let (_, mut respond) = next(&mut server).await;
        respond.send_reset(h2::Reason::INTERNAL_ERROR);
        let (_, mut respond) = next(&mut server).await;
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_data(Bytes::from("part"), false).unwrap();
        let driving = keep(server);
        (driving, stream)
    };
    let client = async {
        let failed = error(rig.send(&endpoint, grpc(&endpoint, "/", Body::from("m"))).await);
        assert_eq!(failed.reason(), Reason::UpstreamReset);
        rig.send(&endpoint, grpc(&endpoint, "/", Body::from("m"))).await.unwrap()
    };
    let (response, (_driving, mut stream)) = join!(client, upstream);
    stream.send_reset(h2::Reason::CANCEL);
    assert!(read(response).await.is_err(), "cut short");
}

async fn abandoned_streams(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut server = accept(&origin).await;
        let (call, mut respond) = next(&mut server).await;
        let stream = respond.send_response(Response::new(()), false).unwrap();
        (keep(server), call, stream)
    };
    let sent = grpc(&endpoint, "/", Body::from("m"));
    let (response, (_driving, _call, mut stream)) = join!(rig.send(&endpoint, sent), upstream);
    drop(response.unwrap());
    let reset = within(std::future::poll_fn(|cx| stream.poll_reset(cx))).await.unwrap();
    assert_eq!(reset, h2::Reason::CANCEL);
}

async fn within_a_fixed_pool(strategy: Strategy) {
    let limit = PoolLimit::Fixed {
        max_connections: 1,
        max_pending: 1,
        acquire_timeout: Duration::from_secs(10),
    };
    let pool = PoolOptions { limit, ..PoolOptions::default() };
    let rig = Rig::with(strategy, ClientOptions { pool, ..ClientOptions::default() });
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(1);
        let stream = origin.accept().await.into_stream();
        let mut server: Server = within(builder.handshake(stream)).await.unwrap();
        for _ in 0..3 {
            let (_, mut respond) = next(&mut server).await;
            answer(&mut respond, "in turn");
        }
        keep(server)
    };
    let call = || async {
        text(rig.send(&endpoint, grpc(&endpoint, "/", Body::from("m"))).await.unwrap()).await
    };
    let (one, two, three, _driving) = join!(call(), call(), call(), upstream);
    assert_eq!((&*one, &*two, &*three), ("in turn", "in turn", "in turn"));
    assert_eq!(rig.stats().opened, 1, "one connection, whose streams take turns");
}
