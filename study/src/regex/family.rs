//! The families of patterns that the study searches for.

/// A pattern of the study.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) pattern: &'static str,
}

/// The families that the paper's authors use, then rows that ask for more.
pub(super) const FAMILIES: &[Family] = &[
    Family { name: "@", pattern: "@" },
    Family { name: "date", pattern: "([0-9][0-9]?)/([0-9][0-9]?)/([0-9][0-9]([0-9][0-9])?)" },
    Family { name: "e-mail", pattern: "([^ @]+)@([^ @]+)" },
    Family { name: "URI or e-mail", pattern: "([a-zA-Z][a-zA-Z0-9]*)://([^ /]+)(/[^ ]*)?|([^ @]+)@([^ @]+)" },
    Family { name: "hexadecimal bytes", pattern: "(^|[ ])0x([a-fA-F0-9][a-fA-F0-9])+[.:,?! ]" },
    Family { name: "nested star", pattern: "(([A-Za-z]{1,10} ){2,3}[a-z]{2,10})+[.]" },
    Family { name: "string", pattern: "mutex_unlock" },
    Family { name: "ing", pattern: "[a-z]+ing" },
    Family { name: "IPv4", pattern: "[0-9]{1,3}([.][0-9]{1,3}){3}" },
    Family { name: "windows", pattern: "[ab].{20}[cd].{20}[ef]" },
    Family { name: "space", pattern: " " },
];
