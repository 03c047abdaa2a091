//! Follows a template's branches through the HTML.

use minijinja::{
    machinery::{
        ast::{Expr, Stmt},
        parse,
    },
    syntax::SyntaxConfig,
};

use super::{
    super::source::Remark,
    Guard, Read,
    scan::{Hole, State},
};

pub(super) fn read(source: &str) -> Read {
    let mut walker = Walker { state: State::Text, read: Read::default() };
    if let Ok(root) = parse(source, "html", SyntaxConfig::default()) {
        walker.statement(&root);
        if !matches!(walker.state, State::Text | State::Raw(..)) {
            walker.fault(source.len(), "the HTML ends within a tag or a comment");
        }
    }
    walker.read
}

struct Walker {
    state: State,
    read: Read,
}

impl Walker {
    fn fault(&mut self, at: usize, text: &str) {
        self.read.faults.push(Remark { at, text: text.to_owned() });
    }

    fn body(&mut self, statements: &[Stmt<'_>]) {
        for it in statements {
            self.statement(it);
        }
    }

    /// What follows `from` through these statements, and is put back to it.
    fn branch(&mut self, from: &State, statements: &[Stmt<'_>]) -> State {
        self.state = from.clone();
        self.body(statements);
        std::mem::replace(&mut self.state, from.clone())
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.body(&it.children),
            Stmt::EmitRaw(it) => self.text(it.raw, it.span().start_offset as usize),
            Stmt::EmitExpr(it) => self.hole(&it.expr, it.span()),
            Stmt::IfCond(it) => {
                let from = self.state.clone();
                let one = self.branch(&from, &it.true_body);
                let other = self.branch(&from, &it.false_body);
                self.meet(it.span().start_offset, vec![one, other]);
            }
            Stmt::ForLoop(it) => {
                let from = self.state.clone();
                let body = self.branch(&from, &it.body);
                let otherwise = self.branch(&from, &it.else_body);
                self.meet(it.span().start_offset, vec![from, body, otherwise]);
            }
            Stmt::WithBlock(it) => self.body(&it.body),
            Stmt::SetBlock(it) => self.apart(it.span().start_offset, &it.body),
            Stmt::FilterBlock(it) => {
                if self.state != State::Text {
                    self.fault(
                        it.span().start_offset as usize,
                        "a filter block must stand in text",
                    );
                }
                self.apart(it.span().start_offset, &it.body);
            }
            Stmt::AutoEscape(it) => {
                let why = "escaping cannot be switched off: mark a single value as safe instead";
                self.fault(it.span().start_offset as usize, why);
            }
            Stmt::Set(_) | Stmt::Do(_) => {}
        }
    }

    /// HTML that is made for later: whole in itself.
    fn apart(&mut self, at: u32, statements: &[Stmt<'_>]) {
        let here = self.state.clone();
        if self.branch(&State::Text, statements) != State::Text {
            self.fault(at as usize, "the HTML within this block must be whole");
        }
        self.state = here;
    }

    fn meet(&mut self, at: u32, ways: Vec<State>) {
        let joined = ways.into_iter().map(Some).reduce(|one, other| one?.join(other?)).flatten();
        match joined {
            Some(state) => self.state = state,
            None => self.fault(
                at as usize,
                "the HTML goes on in different places, depending on this block's branches",
            ),
        }
    }

    fn text(&mut self, text: &str, offset: usize) {
        for (at, c) in text.char_indices() {
            let state = std::mem::replace(&mut self.state, State::Text);
            match state.step(c) {
                Ok(state) => self.state = state,
                Err(why) => return self.fault(offset + at, why),
            }
        }
    }

    fn hole(&mut self, expr: &Expr<'_>, span: minijinja::machinery::Span) {
        let (from, to) = (span.start_offset as usize, span.end_offset as usize);
        let (state, hole) = std::mem::replace(&mut self.state, State::Text).hole();
        self.state = state;
        let outermost = match expr {
            Expr::Filter(it) => it.name,
            _ => "",
        };
        let mut warn =
            |text: &str| self.read.warnings.push(Remark { at: from, text: text.to_owned() });
        match hole {
            Hole::Escaped if outermost == "safe" => warn("this value is not escaped"),
            Hole::Escaped => {}
            Hole::InQuery if outermost != "urlencode" => {
                warn("in the query of a link a value should go through urlencode");
            }
            Hole::InQuery => {}
            Hole::Guarded(filter) => self.read.guards.push(Guard { from, to, filter }),
            Hole::Refused(why) => self.fault(from, why),
        }
    }
}
