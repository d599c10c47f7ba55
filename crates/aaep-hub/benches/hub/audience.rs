//! The load: many ears that only count what they hear, and a few agents that talk. One thread.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdStream;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::events::{self, CYCLE, bare_say_request, say_request};
use crate::server::{Server, Side};
use crate::wire::{connect, take_answer};

/// Bytes that are read at once.
const BUFFER: usize = 256 * 1024;

/// How an event ends. A comment that keeps a stream alive does not end like this.
const END: &[u8; 3] = b"}\n\n";

/// When nothing has come for this long, something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// Silence after which everything that was to come has come.
const SILENCE: Duration = Duration::from_millis(400);

struct Ear {
    stream: TcpStream,
    /// The last bytes that came, in case an end is cut in two.
    tail: [u8; END.len() - 1],
    heard: u64,
    /// What it hears of one cycle.
    of_cycle: u64,
}

struct Agent {
    stream: TcpStream,
    session: String,
    step: u64,
    incoming: Vec<u8>,
    /// Whether it waits for an answer.
    waits: bool,
}

pub struct Audience {
    poll: Poll,
    ready: Events,
    ears: Vec<Ear>,
    agents: Vec<Agent>,
    buffer: Vec<u8>,
    end: Finder<'static>,
    frame: String,
    side: Side,
    heard: u64,
    bytes: u64,
    reads: u64,
    /// When the latest event was sent, and how long each took since, if somebody wants to know.
    said_at: Instant,
    delays: Option<Vec<Duration>>,
    speaks_grpc: bool,
}

impl Audience {
    /// The same over gRPC.
    pub fn ready_over_grpc(server: &Server, ears: usize, agents: usize) -> Self {
        let mut audience = Self::new(server, 0, agents, 0);
        audience.end = Finder::new(crate::grpc::BEGIN);
        for number in 0..ears {
            let stream = audience.watch(crate::grpc::listen(server, number), agents + number);
            let tail = [0; END.len() - 1];
            audience.ears.push(Ear { stream, tail, heard: 0, of_cycle: 0 });
        }
        audience.speaks_grpc = true;
        audience.calibrate();
        audience
    }

    /// Connects, and finds out what each ear hears. `bare_bytes` is the size of the bare server's frames.
    pub fn ready(server: &Server, ears: usize, agents: usize, bare_bytes: usize) -> Self {
        let mut audience = Self::new(server, ears, agents, bare_bytes);
        audience.calibrate();
        audience
    }

    /// Connects. `bare_bytes` is the size of the bare server's frames.
    pub fn new(server: &Server, ears: usize, agents: usize, bare_bytes: usize) -> Self {
        let poll = Poll::new().expect("epoll");
        let mut audience = Self {
            poll,
            ready: Events::with_capacity(1024),
            ears: Vec::new(),
            agents: Vec::new(),
            buffer: vec![0; BUFFER],
            end: Finder::new(END),
            frame: events::bare_frame(bare_bytes),
            side: server.side,
            heard: 0,
            bytes: 0,
            reads: 0,
            said_at: Instant::now(),
            delays: None,
            speaks_grpc: false,
        };
        for number in 0..agents {
            let mut stream = connect(server.address);
            let session = match server.side {
                Side::Hub => events::open_session(&mut stream),
                Side::Bare => String::new(),
            };
            let stream = audience.watch(stream, number);
            let incoming = Vec::new();
            audience.agents.push(Agent { stream, session, step: 0, incoming, waits: false });
        }
        for number in 0..ears {
            let (stream, _) = events::listen(server, number);
            let stream = audience.watch(stream, agents + number);
            let tail = [0; END.len() - 1];
            audience.ears.push(Ear { stream, tail, heard: 0, of_cycle: 0 });
        }
        audience
    }

    fn watch(&self, stream: StdStream, number: usize) -> TcpStream {
        stream.set_nonblocking(true).expect("a socket");
        let mut stream = TcpStream::from_std(stream);
        let registry = self.poll.registry();
        registry.register(&mut stream, Token(number), Interest::READABLE).expect("epoll");
        stream
    }

    /// Finds out what each ear hears of a cycle.
    pub fn calibrate(&mut self) {
        self.listen_until_silent();
        let before: Vec<u64> = self.ears.iter().map(|ear| ear.heard).collect();
        self.bytes = 0;
        for _ in 0..CYCLE {
            self.say(0);
            while self.agents[0].waits {
                self.listen(PATIENCE);
            }
        }
        self.listen_until_silent();
        for (ear, before) in self.ears.iter_mut().zip(before) {
            ear.of_cycle = ear.heard - before;
            assert!(ear.of_cycle > 0, "an ear hears nothing");
        }
    }

    fn listen_until_silent(&mut self) {
        let mut last = Instant::now();
        while last.elapsed() < SILENCE {
            let before = self.heard;
            self.listen(Duration::from_millis(50));
            if self.heard > before {
                last = Instant::now();
            }
        }
    }

    /// Messages that all ears together hear of one cycle.
    fn of_cycle(&self) -> u64 {
        self.ears.iter().map(|ear| ear.of_cycle).sum()
    }

    /// Mean bytes of a message on the wire, as the calibration found it.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.of_cycle()
    }

    /// Messages that were heard so far.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// How often something was read so far.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Every agent goes through this many cycles, as fast as the audience hears, with at most
    /// `ahead` events that not everybody has heard. How long it took until all was heard.
    pub fn rush(&mut self, cycles: u64, ahead: u64) -> Duration {
        if self.speaks_grpc {
            // The server would ask whether an ear that never says anything is there.
            for ear in &mut self.ears {
                ear.stream.write_all(&crate::grpc::PING).expect("room for a ping");
            }
        }
        let start = Instant::now();
        let ears = self.ears.len() as u64;
        let heard_before = self.heard;
        let each = cycles * CYCLE as u64;
        let ends: Vec<u64> = self.agents.iter().map(|agent| agent.step + each).collect();
        let wanted = self.of_cycle() * cycles * self.agents.len() as u64;
        let (mut said, mut next) = (0, 0);
        while self.heard - heard_before < wanted {
            // On the average; the last event of all is waited for by the loop itself.
            let due = said * self.of_cycle() / CYCLE as u64;
            let mut behind = due.saturating_sub(self.heard - heard_before);
            for _ in 0..self.agents.len() {
                let agent = &self.agents[next];
                if behind < ahead * ears && !agent.waits && agent.step < ends[next] {
                    self.say(next);
                    (said, behind) = (said + 1, behind + ears);
                }
                next = (next + 1) % self.agents.len();
            }
            self.listen(PATIENCE);
        }
        start.elapsed()
    }

    /// Says so many cycles at so many events a second; how long each message took.
    pub fn stroll(&mut self, cycles: u64, per_second: u32) -> Vec<Duration> {
        self.delays = Some(Vec::new());
        let pause = Duration::from_secs(1) / per_second;
        for _ in 0..cycles * CYCLE as u64 {
            self.say(0);
            while let Some(rest) = pause.checked_sub(self.said_at.elapsed()) {
                self.listen_for(rest);
            }
        }
        self.listen_until_silent();
        self.delays.take().unwrap_or_default()
    }

    fn say(&mut self, number: usize) {
        let agent = &mut self.agents[number];
        let request = match self.side {
            Side::Hub => say_request(&agent.session, agent.step),
            Side::Bare => bare_say_request(&self.frame),
        };
        self.said_at = Instant::now();
        agent.stream.write_all(&request).expect("a request fits into the socket");
        (agent.step, agent.waits) = (agent.step + 1, true);
    }

    /// Takes what comes; something has to.
    fn listen(&mut self, patience: Duration) {
        if !self.listen_for(patience) && patience == PATIENCE {
            panic!("nothing has come for {patience:?}, after {} messages", self.heard);
        }
    }

    fn listen_for(&mut self, patience: Duration) -> bool {
        let mut ready = std::mem::replace(&mut self.ready, Events::with_capacity(1));
        self.poll.poll(&mut ready, Some(patience)).expect("epoll");
        for event in &ready {
            let Token(number) = event.token();
            match number.checked_sub(self.agents.len()) {
                None => self.hear_agent(number),
                Some(ear) => self.hear(ear),
            }
        }
        let some = !ready.is_empty();
        self.ready = ready;
        some
    }

    fn hear_agent(&mut self, number: usize) {
        let agent = &mut self.agents[number];
        loop {
            match agent.stream.read(&mut self.buffer) {
                Ok(0) => panic!("the server hung up on an agent"),
                Ok(count) => agent.incoming.extend_from_slice(&self.buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        if let Some(answer) = take_answer(&mut agent.incoming) {
            assert_eq!(answer.status, 201, "{answer:?}");
            agent.waits = false;
        }
    }

    fn hear(&mut self, number: usize) {
        let ear = &mut self.ears[number];
        let tail = ear.tail.len();
        loop {
            self.buffer[..tail].copy_from_slice(&ear.tail);
            let count = match ear.stream.read(&mut self.buffer[tail..]) {
                Ok(0) => panic!("the server hung up on an ear after {} messages", ear.heard),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            };
            let come = &self.buffer[..tail + count];
            let ends = self.end.find_iter(come).count() as u64;
            ear.tail.copy_from_slice(&come[count..]);
            ear.heard += ends;
            self.heard += ends;
            self.bytes += count as u64;
            self.reads += 1;
            if let Some(delays) = &mut self.delays {
                let delay = self.said_at.elapsed();
                delays.extend((0..ends).map(|_| delay));
            }
            // A read that does not fill the buffer has emptied the socket.
            if tail + count < BUFFER {
                return;
            }
        }
    }
}
