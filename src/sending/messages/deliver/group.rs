//! Recipients of one step that go the same way, and how they part.

use std::{collections::VecDeque, sync::Arc};

use super::carrier::Way;
use crate::sending::{
    messages::store::{complete::Change, load::Due},
    relays::Relay,
};

/// One envelope sender, and the relays that have not been asked yet in this step.
pub struct Group {
    pub sender: String,
    pub way: Way,
    pub recipients: Vec<Pending>,
    pub relays: VecDeque<Arc<Relay>>,
    /// A relay was passed over because all its places were taken.
    pub crowded: bool,
    /// A relay was passed over because it rests after faults.
    pub resting: bool,
}

/// A recipient without an outcome so far.
#[derive(Clone)]
pub struct Pending {
    pub due: Due,
    /// What becomes of it if no further relay settles it: a relay that was at fault may come back,
    /// and then "cannot be carried" is not the last word.
    pub fallback: Option<Change>,
}

impl Group {
    /// The same way, for some of the recipients.
    pub fn onward(&self, recipients: Vec<Pending>) -> Self {
        Self {
            sender: self.sender.clone(),
            way: self.way,
            recipients,
            relays: self.relays.clone(),
            crowded: self.crowded,
            resting: self.resting,
        }
    }
}
