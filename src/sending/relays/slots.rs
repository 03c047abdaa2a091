//! How many messages each lane may begin now, given what its relays have free.
//!
//! One slot at a time goes to the lane that has least in use, so a stuck or busy lane never
//! starves another one on a relay they share. A relay whose breaker rests has nothing free.

use std::collections::VecDeque;

/// One lane: the senders that share a set of relays.
#[derive(Debug, Clone, Copy)]
pub struct Lane<'a> {
    /// Indexes into `free`.
    pub relays: &'a [usize],
    /// Messages of this lane under way.
    pub in_use: usize,
    /// Of these, those that will take a slot and have none yet.
    pub pending: usize,
    /// It wants more.
    pub wants: bool,
}

/// New slots for each lane: altogether no more than each relay has free, none of the lanes above
/// `lane_cap` with what it has in use. `first` says which of equal lanes is served first; a
/// caller that counts it up gives each its turn when there is less than one slot for each.
pub fn share(lanes: &[Lane<'_>], free: &[usize], lane_cap: usize, first: usize) -> Vec<usize> {
    let mut granted = vec![0; lanes.len()];
    let mut open: Vec<bool> =
        lanes.iter().map(|lane| lane.wants && lane.in_use < lane_cap).collect();
    let mut plan = Plan::new(lanes, free);
    for (lane, it) in lanes.iter().enumerate() {
        // What was promised before comes first.
        for _ in 0..it.pending {
            plan.give(lane);
        }
    }
    let turn = |lane: usize| (lane + lanes.len() - first % lanes.len()) % lanes.len();
    loop {
        let next = (0..lanes.len())
            .filter(|lane| open[*lane])
            .min_by_key(|lane| (lanes[*lane].in_use + granted[*lane], turn(*lane)));
        let Some(lane) = next else {
            return granted;
        };
        if plan.give(lane) {
            granted[lane] += 1;
            open[lane] = lanes[lane].in_use + granted[lane] < lane_cap;
        } else {
            // What cannot be found now cannot be found later in this round: slots only shrink.
            open[lane] = false;
        }
    }
}

/// Which lane holds how many slots of which relay.
///
/// A lane with a choice may sit on the only relay of another one. So a slot is looked for along
/// exchanges as well: move a slot of theirs to another of their relays, take the one set free.
/// That is an augmenting path of a bipartite matching; without it two relays with one slot each
/// would sometimes serve one lane instead of two.
struct Plan<'a> {
    lanes: &'a [Lane<'a>],
    free: Vec<usize>,
    /// `held[lane][relay]`
    held: Vec<Vec<usize>>,
}

/// How a relay was reached: the lane that wants it, and the relay that lane would give up.
type Reach = (usize, Option<usize>);

impl<'a> Plan<'a> {
    fn new(lanes: &'a [Lane<'a>], free: &[usize]) -> Self {
        Self { lanes, free: free.to_vec(), held: vec![vec![0; free.len()]; lanes.len()] }
    }

    fn give(&mut self, lane: usize) -> bool {
        let mut reached: Vec<Option<Reach>> = vec![None; self.free.len()];
        let mut queue = VecDeque::new();
        self.reach(lane, None, &mut reached, &mut queue);
        while let Some(relay) = queue.pop_front() {
            if self.free[relay] > 0 {
                self.free[relay] -= 1;
                self.exchange(relay, &reached);
                return true;
            }
            for other in 0..self.lanes.len() {
                if self.held[other][relay] > 0 {
                    self.reach(other, Some(relay), &mut reached, &mut queue);
                }
            }
        }
        false
    }

    fn reach(
        &self,
        lane: usize,
        instead_of: Option<usize>,
        reached: &mut [Option<Reach>],
        queue: &mut VecDeque<usize>,
    ) {
        for &relay in self.lanes[lane].relays {
            if reached[relay].is_none() {
                reached[relay] = Some((lane, instead_of));
                queue.push_back(relay);
            }
        }
    }

    fn exchange(&mut self, found: usize, reached: &[Option<Reach>]) {
        let mut next = Some(found);
        while let Some(relay) = next {
            let Some((lane, instead_of)) = reached[relay] else { return };
            self.held[lane][relay] += 1;
            if let Some(given_up) = instead_of {
                self.held[lane][given_up] -= 1;
            }
            next = instead_of;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(relays: &[usize], in_use: usize) -> Lane<'_> {
        Lane { relays, in_use, pending: 0, wants: true }
    }

    #[test]
    fn two_lanes_over_one_relay_get_the_same() {
        let lanes = [lane(&[0], 0), lane(&[0], 0)];
        assert_eq!(share(&lanes, &[10], 100, 0), [5, 5]);
        assert_eq!(share(&lanes, &[5], 100, 0), [3, 2]);
        assert_eq!(share(&lanes, &[5], 100, 1), [2, 3]);
    }

    #[test]
    fn a_lane_with_much_under_way_waits_for_the_others() {
        assert_eq!(share(&[lane(&[0], 8), lane(&[0], 0)], &[4], 100, 0), [0, 4]);
        assert_eq!(share(&[lane(&[0], 8), lane(&[0], 0)], &[10], 100, 0), [1, 9]);
    }

    #[test]
    fn a_lane_with_a_choice_leaves_the_only_relay_of_another_to_it() {
        assert_eq!(share(&[lane(&[0, 1], 0), lane(&[0], 0)], &[1, 1], 100, 0), [1, 1]);
        assert_eq!(
            share(&[lane(&[0, 1], 0), lane(&[1, 2], 0), lane(&[0], 0)], &[1, 1, 1], 9, 0),
            [1, 1, 1]
        );
    }

    #[test]
    fn a_resting_relay_stops_only_those_who_have_no_other() {
        assert_eq!(
            share(&[lane(&[0], 0), lane(&[1], 0), lane(&[0, 1], 0)], &[0, 6], 100, 0),
            [0, 3, 3]
        );
    }

    #[test]
    fn what_was_promised_and_not_taken_yet_is_not_promised_again() {
        let pending = Lane { pending: 3, wants: false, ..lane(&[0], 3) };
        assert_eq!(share(&[pending, lane(&[0], 0)], &[4], 100, 0), [0, 1]);
        let moves_over = Lane { pending: 1, ..lane(&[0, 1], 1) };
        assert_eq!(share(&[moves_over, lane(&[0], 0)], &[1, 1], 100, 0), [0, 1]);
    }

    #[test]
    fn nothing_to_share_is_no_trouble() {
        assert_eq!(share(&[], &[3], 4, 7), [0usize; 0]);
        assert_eq!(share(&[lane(&[], 0), lane(&[0], 9)], &[3], 4, 7), [0, 0]);
    }

    proptest! {
        #[test]
        fn bounds_hold_and_nothing_is_left_that_somebody_could_use(
            lanes in prop::collection::vec((prop::collection::btree_set(0usize..4, 0..4), 0usize..6), 0..6),
            free in prop::collection::vec(0usize..7, 4),
            lane_cap in 0usize..9,
            first in 0usize..10,
        ) {
            let sets: Vec<Vec<usize>> = lanes.iter().map(|(set, _)| set.iter().copied().collect()).collect();
            let lanes: Vec<Lane<'_>> =
                sets.iter().zip(&lanes).map(|(relays, (_, in_use))| lane(relays, *in_use)).collect();
            let granted = share(&lanes, &free, lane_cap, first);

            for (lane, slots) in lanes.iter().zip(&granted) {
                prop_assert!(*slots == 0 || lane.in_use + slots <= lane_cap);
            }
            // Hall's condition: no set of lanes holds more than its relays have free together.
            for chosen in 0u32..1 << lanes.len() {
                let within: Vec<usize> = (0..lanes.len()).filter(|at| chosen >> at & 1 == 1).collect();
                let slots: usize = within.iter().map(|at| granted[*at]).sum();
                let reach = |relay: &usize| within.iter().any(|at| lanes[*at].relays.contains(relay));
                let free: usize = (0..4).filter(reach).map(|relay| free[relay]).sum();
                prop_assert!(slots <= free);
            }
            // One more for a lane below its cap must break Hall's condition somewhere.
            for more in (0..lanes.len()).filter(|at| lanes[*at].in_use + granted[*at] < lane_cap) {
                let full = (0u32..1 << lanes.len()).filter(|set| set >> more & 1 == 1).any(|chosen| {
                    let within: Vec<usize> = (0..lanes.len()).filter(|at| chosen >> at & 1 == 1).collect();
                    let slots: usize = within.iter().map(|at| granted[*at]).sum();
                    let reach = |relay: &usize| within.iter().any(|at| lanes[*at].relays.contains(relay));
                    slots == (0..4).filter(reach).map(|relay| free[relay]).sum::<usize>()
                });
                prop_assert!(full);
            }
        }

        #[test]
        fn lanes_that_share_one_relay_differ_by_one_at_most(
            n_lanes in 1usize..8, free in 0usize..40, first in 0usize..9,
        ) {
            let lanes = vec![lane(&[0], 0); n_lanes];
            let granted = share(&lanes, &[free], 100, first);
            let (least, most) = (granted.iter().min().unwrap(), granted.iter().max().unwrap());
            prop_assert!(most - least <= 1);
            prop_assert_eq!(granted.iter().sum::<usize>(), free);
        }

        #[test]
        fn no_lane_gains_while_another_that_wants_has_less_in_use(
            in_use in prop::collection::vec(0usize..10, 2..5), free in 0usize..30, first in 0usize..9,
        ) {
            let lanes: Vec<Lane<'_>> = in_use.iter().map(|n| lane(&[0], *n)).collect();
            let granted = share(&lanes, &[free], 100, first);
            for (a, b) in (0..lanes.len()).flat_map(|a| (0..lanes.len()).map(move |b| (a, b))) {
                if granted[a] > 0 {
                    prop_assert!(in_use[a] + granted[a] <= in_use[b] + granted[b] + 1);
                }
            }
        }
    }
}
