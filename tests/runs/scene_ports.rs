//! The ports of a scene: a clock that jumps to the next sleeper, ids that count, a log and a database to look into.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_bridge::protocol::id::MessageId;
use io_bridge::run::keeper::Keeper;
use io_bridge::run::mcp_lists::McpLists;
use io_bridge::run::ports::{Clock, IdSource, Level, Log, OutboxFull, Ports};
use io_bridge::store::{Database, DatabaseError, EndRun, PersistentRun, Row, Statement};

pub use crate::bucket::Bucket as SceneBucket;
use crate::http::SceneHttp;
use crate::object_sqlite::ObjectSqlite;
use crate::sqlite::Sqlite;

/// When the scene starts, Unix milliseconds: 2026-11-29T00:00:00Z.
pub const START_MS: u64 = 1_795_910_400_000;

/// A clock that stands still until everything waits for it.
#[derive(Clone, Default)]
pub struct SceneClock(Rc<ClockState>);

#[derive(Default)]
struct ClockState {
    now_ms: Cell<u64>,
    sleepers: RefCell<Vec<Rc<Sleeper>>>,
    sleep_count: Cell<usize>,
}

struct Sleeper {
    due_ms: u64,
    waker: RefCell<Option<Waker>>,
}

pub struct SceneSleep(Rc<ClockState>, Rc<Sleeper>);

impl Future for SceneSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.now_ms.get() >= self.1.due_ms {
            return Poll::Ready(());
        }
        *self.1.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for SceneSleep {
    fn drop(&mut self) {
        self.0
            .sleepers
            .borrow_mut()
            .retain(|sleeper| !Rc::ptr_eq(sleeper, &self.1));
    }
}

impl Clock for SceneClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.0.now_ms.get()
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + 'static {
        let sleeper = Rc::new(Sleeper {
            due_ms: self.0.now_ms.get() + ms,
            waker: RefCell::default(),
        });
        self.0.sleepers.borrow_mut().push(sleeper.clone());
        self.0.sleep_count.set(self.0.sleep_count.get() + 1);
        SceneSleep(self.0.clone(), sleeper)
    }
}

impl SceneClock {
    /// Jumps to the next sleeper; false when nobody sleeps.
    pub fn jump(&self) -> bool {
        let Some(due_ms) = self
            .0
            .sleepers
            .borrow()
            .iter()
            .map(|sleeper| sleeper.due_ms)
            .min()
        else {
            return false;
        };
        self.0.now_ms.set(due_ms.max(self.0.now_ms.get()));
        let woken: Vec<_> = self
            .0
            .sleepers
            .borrow()
            .iter()
            .filter(|sleeper| sleeper.due_ms <= due_ms)
            .cloned()
            .collect();
        for sleeper in woken {
            if let Some(waker) = sleeper.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        true
    }

    /// Timers that were set so far.
    pub fn sleep_count(&self) -> usize {
        self.0.sleep_count.get()
    }

    /// Milliseconds since the scene started.
    pub fn elapsed_ms(&self) -> u64 {
        self.0.now_ms.get()
    }
}

/// Counts: `msg-1`, `msg-2`, ...; with a database, `r1-msg-1`, ... after the run.
pub struct SceneIds {
    pub prefix: String,
    pub count: Cell<u32>,
}

impl IdSource for SceneIds {
    fn message_id(&self) -> MessageId {
        self.count.set(self.count.get() + 1);
        MessageId::new(format!("{}msg-{}", self.prefix, self.count.get()))
    }

    fn token(&self) -> String {
        "incarnation".to_owned()
    }

    fn fraction(&self) -> f64 {
        0.0
    }
}

#[derive(Default)]
pub struct SceneLog(pub RefCell<Vec<String>>);

impl Log for SceneLog {
    fn line(&self, level: Level, event: &'static str, members: &[(&'static str, &dyn std::fmt::Display)]) {
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.0
            .borrow_mut()
            .push(format!("{level:?} {event} {}", members.join(" ")));
    }
}

/// One database shared by the scenes of a test.
#[derive(Clone)]
pub struct SceneDatabase(pub Rc<Sqlite>, pub Reset);

impl SceneDatabase {
    pub fn new() -> Self {
        Self(Rc::new(Sqlite::new()), Reset::default())
    }
}

/// When an object is reset, and whether it was.
#[derive(Clone, Default)]
pub struct Reset {
    /// Points that are still to be passed: flushes, and database batches, each before and after it has its effect.
    pub points: Rc<Cell<Option<usize>>>,
    /// Whether it was reset.
    pub has_come: Rc<Cell<bool>>,
}

impl Reset {
    /// A wait of the run that may be its last.
    pub async fn pass(&self) {
        let Some(left) = self.points.get() else {
            return;
        };
        self.points.set(left.checked_sub(1));
        if left == 0 {
            self.has_come.set(true);
            futures::future::pending::<()>().await;
        }
    }
}

impl std::ops::Deref for SceneDatabase {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.0
    }
}

impl Database for SceneDatabase {
    fn batch(
        &self,
        statements: Vec<Statement>,
    ) -> impl Future<Output = Result<Vec<Vec<Row>>, DatabaseError>> {
        let (done, reset) = (self.0.batch(statements), self.1.clone());
        async move {
            reset.pass().await;
            let done = done.await;
            reset.pass().await;
            done
        }
    }
}

pub struct ScenePorts {
    pub http: SceneHttp,
    pub database: Option<SceneDatabase>,
    pub bucket: Option<SceneBucket>,
    pub search: Option<SceneDatabase>,
    pub clock: SceneClock,
    pub ids: SceneIds,
    pub log: SceneLog,
    pub outbox: RefCell<Vec<(PersistentRun, EndRun)>>,
    pub lists: Rc<McpLists>,
    pub keeper: Keeper<ObjectSqlite>,
}

impl Ports for ScenePorts {
    type Http = SceneHttp;
    type Database = SceneDatabase;
    type Attachments = Option<SceneBucket>;
    type Clock = SceneClock;
    type Ids = SceneIds;
    type Log = SceneLog;
    type Storage = ObjectSqlite;

    fn http(&self) -> &SceneHttp {
        &self.http
    }

    fn database(&self) -> Option<&SceneDatabase> {
        self.database.as_ref()
    }

    fn attachments(&self) -> &Option<SceneBucket> {
        &self.bucket
    }

    fn search(&self) -> Option<&SceneDatabase> {
        self.search.as_ref()
    }

    fn clock(&self) -> &SceneClock {
        &self.clock
    }

    fn ids(&self) -> &SceneIds {
        &self.ids
    }

    fn log(&self) -> &SceneLog {
        &self.log
    }

    fn mcp_lists(&self) -> &McpLists {
        &self.lists
    }

    fn keeper(&self) -> &Keeper<ObjectSqlite> {
        &self.keeper
    }

    fn keep_undelivered(&self, run: &PersistentRun, end: &EndRun) -> Result<(), OutboxFull> {
        self.outbox.borrow_mut().push((run.clone(), end.clone()));
        Ok(())
    }
}
