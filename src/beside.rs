//! A few futures beside each other. All that run are looked at whenever one wakes: for a handful that is less work, and
//! far less code, than keeping account of who woke.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::vec;

use futures::future::LocalBoxFuture;

/// Futures of which some run at a time. Dropping it drops them.
pub struct Beside<'a, T> {
    queued: vec::IntoIter<LocalBoxFuture<'a, T>>,
    running: Vec<(usize, LocalBoxFuture<'a, T>)>,
    at_once: usize,
    started_count: usize,
}

impl<'a, T> Beside<'a, T> {
    /// These futures, of which at most `at_once` run, started in their order.
    pub fn new(at_once: usize, futures: Vec<LocalBoxFuture<'a, T>>) -> Self {
        Self {
            queued: futures.into_iter(),
            running: Vec::new(),
            at_once,
            started_count: 0,
        }
    }

    /// The next that ends: its place in the order, and what it gives. `None` when all have ended.
    pub async fn next(&mut self) -> Option<(usize, T)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, T)>> {
        while self.running.len() < self.at_once
            && let Some(future) = self.queued.next()
        {
            self.running.push((self.started_count, future));
            self.started_count += 1;
        }
        for (index, (place, future)) in self.running.iter_mut().enumerate() {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                let ended = (*place, value);
                drop(self.running.remove(index));
                return Poll::Ready(Some(ended));
            }
        }
        if self.running.is_empty() {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }

    /// What all of them give, in their order.
    pub async fn all(mut self) -> Vec<T> {
        let mut values = Vec::new();
        values.resize_with(self.started_count + self.queued.len(), || None);
        while let Some((place, value)) = self.next().await {
            if let Some(slot) = values.get_mut(place) {
                *slot = Some(value);
            }
        }
        values.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures::FutureExt;
    use futures::channel::oneshot;

    use super::*;

    #[test]
    fn what_ends_first_comes_first_and_all_come_in_their_order() {
        let boxed = |receiver: oneshot::Receiver<char>| -> LocalBoxFuture<'_, char> {
            Box::pin(receiver.map(Result::unwrap))
        };
        let (first, receive_first) = oneshot::channel();
        let (second, receive_second) = oneshot::channel();
        let mut beside = Beside::new(2, vec![boxed(receive_first), boxed(receive_second)]);
        assert_eq!(beside.next().now_or_never(), None);
        second.send('b').unwrap();
        assert_eq!(beside.next().now_or_never(), Some(Some((1, 'b'))));
        first.send('a').unwrap();
        assert_eq!(beside.next().now_or_never(), Some(Some((0, 'a'))));
        assert_eq!(beside.next().now_or_never(), Some(None));

        let (first, receive_first) = oneshot::channel();
        let (second, receive_second) = oneshot::channel();
        let mut all = Box::pin(Beside::new(2, vec![boxed(receive_first), boxed(receive_second)]).all());
        second.send('b').unwrap();
        assert_eq!(all.as_mut().now_or_never(), None);
        first.send('a').unwrap();
        assert_eq!(all.now_or_never(), Some(vec!['a', 'b']));
    }

    #[test]
    fn no_more_run_than_may() {
        let started = RefCell::new(Vec::new());
        let is_open = Cell::new(false);
        let task = |index| -> LocalBoxFuture<'_, usize> {
            let (started, is_open, mut is_first) = (&started, &is_open, true);
            Box::pin(poll_fn(move |_| {
                if std::mem::take(&mut is_first) {
                    started.borrow_mut().push(index);
                }
                if is_open.get() {
                    Poll::Ready(index)
                } else {
                    Poll::Pending
                }
            }))
        };
        let mut beside = Beside::new(2, (0..4).map(task).collect());
        assert_eq!(beside.next().now_or_never(), None);
        assert_eq!(*started.borrow(), [0, 1]);
        is_open.set(true);
        assert_eq!(beside.all().now_or_never(), Some(vec![0, 1, 2, 3]));
    }
}
