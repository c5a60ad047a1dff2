//! A question to an HTTP server, and how its answer begins (RFC 9112).

use core::fmt::Write as _;
use core::net::IpAddr;

/// What has come of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its status is still to come.
    More,
    /// Its status.
    Status(u16),
    /// Something else than an answer of HTTP/1.
    Other,
}

/// The status that says: from now on another protocol is spoken. No other answer follows it.
const SWITCHES: u16 = 101;

/// The request for `path` to the server on `port` of the address `host`.
pub fn request(path: &str, host: IpAddr, port: u16) -> String {
    let mut text = "GET ".to_owned();
    for byte in path.bytes() {
        // A blank or the end of a line would be the end of the path.
        if byte.is_ascii_graphic() {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    let host = match host {
        address if address.is_loopback() && is_usual(address) => "localhost".to_owned(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let _ = write!(
        text,
        " HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: execd\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    text
}

/// Whether it is what `localhost` means.
fn is_usual(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 1]) || address.is_ipv6()
}

/// The status of an answer that begins so. Answers that only announce another one (1xx) are passed
/// over.
pub fn status(bytes: &[u8]) -> Answer {
    let mut rest = bytes;
    loop {
        match first_line(rest) {
            Answer::Status(code) if code < 200 && code != SWITCHES => {}
            told => return told,
        }
        let Some(length) = head_bytes(rest) else { return Answer::More };
        rest = &rest[length..];
    }
}

fn first_line(bytes: &[u8]) -> Answer {
    const NAME: &[u8] = b"HTTP/1.";
    /// Name, a digit, a blank, three digits, and what ends them.
    const LEAST: usize = NAME.len() + 6;
    let known = bytes.len().min(NAME.len());
    if bytes[..known] != NAME[..known] {
        return Answer::Other;
    }
    let Some(line) = bytes.get(NAME.len()..LEAST) else { return Answer::More };
    let [minor, b' ', digits @ .., end] = line else { return Answer::Other };
    let fits = minor.is_ascii_digit() && matches!(end, b' ' | b'\r' | b'\n');
    let code = digits.iter().try_fold(0_u16, |code, digit| {
        digit.is_ascii_digit().then(|| code * 10 + u16::from(digit - b'0'))
    });
    match code {
        Some(code @ 100..) if fits => Answer::Status(code),
        _ => Answer::Other,
    }
}

/// Bytes as far as the empty line that ends an answer's head.
fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let mut line_begins = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' {
            if matches!(&bytes[line_begins..at], [] | [b'\r']) {
                return Some(at + 1);
            }
            line_begins = at + 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_told_as_soon_as_it_is_there() {
        let whole = b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n";
        for length in 0..whole.len() {
            let expected = if length < 13 { Answer::More } else { Answer::Status(204) };
            assert_eq!(status(&whole[..length]), expected, "{length} bytes");
        }
        assert_eq!(status(b"HTTP/1.0 404\r\n"), Answer::Status(404));
        assert_eq!(status(b"HTTP/1.1 503\n"), Answer::Status(503));
    }

    #[test]
    fn an_answer_that_only_announces_another_is_passed_over() {
        let early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n";
        assert_eq!(status(early), Answer::Status(200));
        for length in 0..early.len() {
            assert_ne!(status(&early[..length]), Answer::Other, "{length} bytes");
        }
        assert_eq!(status(b"HTTP/1.1 100 Continue\n\nHTTP/1.1 302 x"), Answer::Status(302));
        assert_eq!(status(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), Answer::Status(101));
    }

    #[test]
    fn what_is_no_http_is_found_out_by_its_first_bytes() {
        let others: [&[u8]; 8] = [
            b"\x15\x03\x01",
            b"SSH-2.0-x",
            b"HTTP/2 200 ",
            b"HTTP/1.1 20x OK",
            b"HTTP/1.1 099 OK",
            b"HTTP/1.1 2000 ",
            b"HTTP/1.x 200 ",
            b"HTTP/1.1200 OK",
        ];
        for bytes in others {
            assert_eq!(status(bytes), Answer::Other, "{bytes:?}");
        }
    }

    #[test]
    fn a_request_is_one_whatever_its_path_holds() {
        let at = |path: &str, host: &str| request(path, host.parse().unwrap(), 80);
        let plain = at("/a?b=c&d", "127.0.0.1");
        assert!(plain.starts_with("GET /a?b=c&d HTTP/1.1\r\nHost: localhost:80\r\n"), "{plain}");
        assert!(plain.ends_with("\r\nConnection: close\r\n\r\n"), "{plain}");
        let strange = at("/a b\r\nX: y/ü", "127.0.0.2");
        let first = "GET /a%20b%0D%0AX:%20y/%C3%BC HTTP/1.1\r\nHost: 127.0.0.2:80\r\n";
        assert!(strange.starts_with(first), "{strange}");
        assert!(at("/", "::1").contains("\r\nHost: localhost:80\r\n"));
        assert!(at("/", "fd00::2").contains("\r\nHost: [fd00::2]:80\r\n"));
    }
}
