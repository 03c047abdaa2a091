//! Names that a template uses and the language does not have. The engine finds them only when it comes
//! past them; here they are found when the template is saved.

use minijinja::{
    ErrorKind, Template,
    machinery::{Instruction, get_compiled_template},
};

use super::{engine::engine, source::Remark};

/// The methods of `loop`: no other value has any.
const METHODS: &[&str] = &["cycle", "changed"];

pub(super) fn unknown(template: &Template<'_, '_>) -> Vec<Remark> {
    let instructions = &get_compiled_template(template).instructions;
    let mut remarks = Vec::new();
    for nth in 0.. {
        let Some(instruction) = instructions.get(nth) else { break };
        if let Some(text) = fault(instruction) {
            let at = instructions.get_span(nth).map_or(0, |it| it.start_offset as usize);
            remarks.push(Remark { at, text });
        }
    }
    remarks
}

fn fault(instruction: &Instruction<'_>) -> Option<String> {
    let mut state = engine().empty_state();
    match instruction {
        Instruction::ApplyFilter(name, ..) => {
            let missing = state.apply_filter(name, &[]).err()?.kind() == ErrorKind::UnknownFilter;
            missing.then(|| format!("there is no filter {name}"))
        }
        Instruction::PerformTest(name, ..) => {
            let missing = state.perform_test(name, &[]).err()?.kind() == ErrorKind::UnknownTest;
            missing.then(|| format!("there is no test {name}"))
        }
        Instruction::CallFunction(name, ..) => {
            let missing = *name != "loop" && engine().globals().all(|(it, _)| it != *name);
            missing.then(|| format!("there is no function {name}"))
        }
        Instruction::CallMethod(name, ..) => {
            let missing = !METHODS.contains(name);
            missing.then(|| format!("values have no method {name}: look for a filter"))
        }
        _ => None,
    }
}
