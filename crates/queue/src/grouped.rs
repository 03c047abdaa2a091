//! Many small writes, one commit: what arrives while a commit is under way rides the next one.

use std::{
    collections::{HashSet, VecDeque},
    future::Future,
    hash::Hash,
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::error::{Error, Refusal, Result};

/// A place where concurrent callers hand in items that are written together.
///
/// An answer is given after the commit that holds it. If a batch fails, each of its items is tried
/// alone, so that no item suffers for another.
pub struct Grouped<I, O> {
    inbox: mpsc::UnboundedSender<(I, oneshot::Sender<Result<O>>)>,
}

impl<I, O> Clone for Grouped<I, O> {
    fn clone(&self) -> Self {
        Self { inbox: self.inbox.clone() }
    }
}

impl<I: Send + Sync + 'static, O: Send + 'static> Grouped<I, O> {
    /// `write` commits a batch and answers for each item, in order. A batch ends at `most` items,
    /// or when the sum of their `weight`s passes `heaviest`; items of one `key` never share a batch.
    pub fn start<K, F, Fut, E>(
        tasks: &TaskTracker,
        most: usize,
        heaviest: usize,
        weight: fn(&I) -> usize,
        key: fn(&I) -> Option<K>,
        write: F,
    ) -> Self
    where
        K: Eq + Hash + Send + 'static,
        F: Fn(Arc<Vec<I>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<O>, E>> + Send,
        E: Into<Refusal> + Send,
    {
        let (inbox, mut arrivals) = mpsc::unbounded_channel();
        tasks.spawn(async move {
            let mut left_over = VecDeque::new();
            loop {
                let Some(first) = (match left_over.pop_front() {
                    Some(item) => Some(item),
                    None => arrivals.recv().await,
                }) else {
                    return;
                };
                let (mut items, mut callers, mut load) = (Vec::new(), Vec::new(), 0);
                let (mut keys, mut later) = (HashSet::new(), VecDeque::new());
                let mut next = Some(first);
                while let Some((item, caller)) = next.take() {
                    let twin = key(&item).is_some_and(|key| !keys.insert(key));
                    if twin || (!items.is_empty() && load + weight(&item) > heaviest) {
                        later.push_back((item, caller));
                    } else {
                        load += weight(&item);
                        items.push(item);
                        callers.push(caller);
                    }
                    if items.len() < most && later.len() < most {
                        next = left_over.pop_front().or_else(|| arrivals.try_recv().ok());
                    }
                }
                later.append(&mut left_over);
                left_over = later;
                answer(&write, items, callers).await;
            }
        });
        Self { inbox }
    }

    /// Hands in one item and waits for its commit.
    pub async fn put(&self, item: I) -> Result<O> {
        let (caller, answer) = oneshot::channel();
        self.inbox.send((item, caller)).map_err(|_| Error::Stopping)?;
        answer.await.map_err(|_| Error::Stopping)?
    }
}

async fn answer<I, O, F, Fut, E>(write: &F, items: Vec<I>, callers: Vec<oneshot::Sender<Result<O>>>)
where
    F: Fn(Arc<Vec<I>>) -> Fut,
    Fut: Future<Output = Result<Vec<O>, E>>,
    E: Into<Refusal>,
{
    let items = Arc::new(items);
    match write(items.clone()).await {
        Ok(outcomes) => {
            debug_assert_eq!(outcomes.len(), callers.len(), "one answer for each item");
            for (caller, outcome) in callers.into_iter().zip(outcomes) {
                // A caller that left does not change what was written.
                let _left = caller.send(Ok(outcome));
            }
        }
        Err(error) if callers.len() == 1 => {
            if let Some(caller) = callers.into_iter().next() {
                let _left = caller.send(Err(Error::Refused(error.into())));
            }
        }
        Err(_) => {
            let alone = Arc::into_inner(items).expect("the writer has ended");
            for (item, caller) in alone.into_iter().zip(callers) {
                let outcome = write(Arc::new(vec![item])).await.map_err(Into::into);
                let one = outcome
                    .and_then(|mut it| it.pop().ok_or_else(|| "no answer for the item".into()));
                let _left = caller.send(one.map_err(Error::Refused));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn what_arrives_during_a_commit_rides_the_next_one() {
        let (tasks, sizes) = (TaskTracker::new(), Arc::new(Mutex::new(Vec::new())));
        let (seen, gate) = (sizes.clone(), Arc::new(tokio::sync::Semaphore::new(0)));
        let opened = gate.clone();
        let group = Grouped::start(
            &tasks,
            100,
            1000,
            |_| 1,
            |_| None::<u32>,
            move |items: Arc<Vec<u32>>| {
                let (seen, gate) = (seen.clone(), gate.clone());
                async move {
                    gate.acquire().await.unwrap().forget();
                    seen.lock().unwrap().push(items.len());
                    Ok::<_, Refusal>(items.iter().map(|it| it * 2).collect())
                }
            },
        );
        let calls: Vec<_> = (0..50)
            .map(|n| {
                let group = group.clone();
                tasks.spawn(async move { group.put(n).await.unwrap() })
            })
            .collect();
        opened.add_permits(50);
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), 2 * n as u32);
        }
        let sizes = sizes.lock().unwrap().clone();
        assert_eq!(sizes.iter().sum::<usize>(), 50);
        assert!(sizes.len() < 50, "every item had a commit of its own: {sizes:?}");
    }

    #[tokio::test]
    async fn one_bad_item_spoils_no_other() {
        let tasks = TaskTracker::new();
        let group = Grouped::start(
            &tasks,
            100,
            1000,
            |_| 1,
            |_| None::<u32>,
            |items: Arc<Vec<u32>>| async move {
                match items.contains(&13) {
                    true => Err("thirteen"),
                    false => Ok(items.to_vec()),
                }
            },
        );
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let group = group.clone();
                tasks.spawn(async move { group.put(n).await })
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().is_ok(), n != 13, "item {n}");
        }
    }
}
