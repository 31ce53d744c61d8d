//! Logs that are composed on the spot, the same ones every time: a column of messages, and one of
//! short requests.

/// Random numbers that repeat.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A column: values and offsets.
pub(crate) struct Rows {
    pub(crate) values: Vec<u8>,
    pub(crate) offsets: Vec<i32>,
}

impl Rows {
    fn new() -> Rows {
        Rows { values: Vec::new(), offsets: vec![0] }
    }

    fn push(&mut self, row: &str) {
        self.values.extend_from_slice(row.as_bytes());
        self.offsets.push(self.values.len() as i32);
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn row(&self, row: usize) -> &[u8] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// The rows as lines of one text.
    pub(crate) fn lines(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.values.len() + self.len());
        for row in 0..self.len() {
            text.extend_from_slice(self.row(row));
            text.push(b'\n');
        }
        text
    }

    /// A view of 16 bytes for each row.
    pub(crate) fn views(&self) -> Vec<[u8; 16]> {
        let view = |row: usize| {
            let (bytes, mut view) = (self.row(row), [0; 16]);
            view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            if bytes.len() <= 12 {
                view[4..4 + bytes.len()].copy_from_slice(bytes);
            } else {
                view[4..8].copy_from_slice(&bytes[..4]);
                view[12..].copy_from_slice(&(self.offsets[row] as u32).to_le_bytes());
            }
            view
        };
        (0..self.len()).map(view).collect()
    }
}

/// Messages of services, some 180 bytes each.
pub(crate) fn messages(bytes: usize) -> Rows {
    let (mut rows, mut random) = (Rows::new(), Random(2026));
    while rows.values.len() < bytes {
        let row = message(&mut random);
        rows.push(&row);
    }
    rows
}

/// Requests, some 20 bytes each.
pub(crate) fn requests(bytes: usize) -> Rows {
    let (mut rows, mut random) = (Rows::new(), Random(7));
    while rows.values.len() < bytes {
        let (verb, noun) = (random.of(&["GET", "GET", "GET", "PUT", "POST"]), random.of(NOUNS));
        let bits = 16 + random.below(16);
        rows.push(&format!("{verb} /{noun}/{}", random.below(1 << bits)));
    }
    rows
}

pub(crate) const NOUNS: &[&str] = &[
    "account",
    "archive",
    "basket",
    "billing",
    "cache",
    "catalog",
    "cluster",
    "config",
    "customer",
    "database",
    "device",
    "disk",
    "endpoint",
    "gateway",
    "image",
    "index",
    "invoice",
    "journal",
    "ledger",
    "mailbox",
    "metric",
    "network",
    "order",
    "partition",
    "payment",
    "pipeline",
    "profile",
    "queue",
    "region",
    "replica",
    "report",
    "request",
    "router",
    "schedule",
    "segment",
    "service",
    "session",
    "shard",
    "snapshot",
    "socket",
    "stream",
    "tenant",
    "thread",
    "ticket",
    "token",
    "topic",
    "transfer",
    "volume",
    "webhook",
    "worker",
];

pub(crate) const VERBS: &[&str] = &[
    "accepted",
    "allocated",
    "attached",
    "balanced",
    "cancelled",
    "closed",
    "committed",
    "compacted",
    "connected",
    "created",
    "deleted",
    "denied",
    "detached",
    "dropped",
    "enqueued",
    "evicted",
    "expired",
    "failed",
    "flushed",
    "granted",
    "loaded",
    "locked",
    "merged",
    "migrated",
    "opened",
    "paused",
    "promoted",
    "published",
    "purged",
    "rebuilt",
    "received",
    "refused",
    "rejected",
    "released",
    "renamed",
    "replayed",
    "restarted",
    "resumed",
    "retried",
    "revoked",
    "rotated",
    "scheduled",
    "sent",
    "skipped",
    "started",
    "stopped",
    "timed out",
    "throttled",
    "truncated",
    "verified",
];

const TAILS: &[&str] = &[
    "while processing the nightly batch",
    "after waiting for the leader",
    "because the lease was missing",
    "during startup of the node",
    "as requested by the operator",
    "following a change of membership",
    "without any further information",
    "before the deadline of the caller",
    "on behalf of another tenant",
];

const LEVELS: &[&str] = &["INFO", "INFO", "INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARN", "ERROR"];

const NAMES: &[&str] = &["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"];

fn message(random: &mut Random) -> String {
    let day = random.below(1_000_000);
    let head = format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z {} {}-{} ",
        day % 12 + 1,
        day % 28 + 1,
        day % 24,
        day % 59,
        day % 53,
        day % 997,
        random.of(LEVELS),
        random.of(NOUNS),
        random.below(64),
    );
    let what = format!("{} {} {}", random.of(NOUNS), random.of(VERBS), random.of(TAILS));
    let number = random.below(u64::MAX);
    let detail = match random.below(12) {
        0 => format!(
            "peer={}.{}.{}.{}:{}",
            number & 255,
            number >> 8 & 255,
            number >> 16 & 255,
            number >> 24 & 255,
            1024 + (number >> 32 & 0x7fff)
        ),
        1 => format!("user={}.{}@example.com", random.of(NAMES), random.of(NOUNS)),
        2 => format!(
            "trace={:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            number & 0xffff_ffff,
            number >> 32 & 0xffff,
            number >> 20 & 0xffff,
            number >> 9 & 0xffff,
            number >> 11 & 0xffff_ffff_ffff
        ),
        3 => format!("path=/var/lib/{}/{}/{}.log", random.of(NOUNS), random.below(900), random.of(NOUNS)),
        4 => format!(
            "status={} bytes={}",
            [200, 200, 200, 204, 301, 404, 500, 503][random.below(8) as usize],
            number & 0xf_ffff
        ),
        5 => format!(
            "url=https://{}.example.org/{}?id={}",
            random.of(NOUNS),
            random.of(NOUNS),
            number & 0xffff
        ),
        6 => format!("latency={}ms queue={}", number % 9000, number >> 40 & 63),
        7 => format!("caused by: {} of {} {}", random.of(VERBS), random.of(NOUNS), random.below(99_999)),
        8 => format!("session opened for user {} by (uid={})", random.of(NAMES), random.below(2000)),
        9 => format!("sha256={:016x}{:016x}", number, number.rotate_left(29)),
        10 => format!("retrying in {}s, attempt {} of {}", number % 60, number >> 8 & 7, 8),
        _ => format!("thread {} holding {} for {}us", random.below(512), random.of(NOUNS), number & 0xffff),
    };
    format!(
        "{head}[{}] {what}; {detail} region={} build={}",
        random.of(NAMES),
        random.of(&["eu-west-1", "us-east-2", "ap-south-1"]),
        random.below(4000)
    )
}
