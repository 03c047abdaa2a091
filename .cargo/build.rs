//! `migrate!` embeds the migrations when it is compiled; a new one must compile it again.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
