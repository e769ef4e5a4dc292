//! `docs/config.md` says what the table of keys says.

use std::{env, fs};

use twinlog_core::config::keys::page;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");

#[test]
fn the_page_of_keys_is_up_to_date() {
    let page = page::markdown();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(PAGE, &page).expect("write docs/config.md");
    }

    let found = fs::read_to_string(PAGE).expect("read docs/config.md");

    assert!(
        found == page,
        "docs/config.md is out of date: UPDATE_GOLDEN=1 cargo test -p twinlog-core --test config_page"
    );
}
