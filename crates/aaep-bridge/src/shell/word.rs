//! What a word of a command stands for, where that can be told without running anything.

use tree_sitter::Node;

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Exactly this text.
    Literal(String),
    /// A pattern for names of files, such as `*.rs`.
    Pattern(String),
    /// Known only when it runs, such as `$FILE`.
    Dynamic(String),
}

impl Value {
    /// The text, if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// The text as it was written, near enough for people.
    pub(crate) fn written(&self) -> &str {
        let (Self::Literal(text) | Self::Pattern(text) | Self::Dynamic(text)) = self;
        text
    }
}

/// Reads words of one text.
pub(crate) struct Reader<'a> {
    pub(crate) source: &'a str,
    pub(crate) home: Option<&'a str>,
}

/// Pieces of one word.
#[derive(Default)]
struct Piece {
    text: String,
    is_pattern: bool,
    is_dynamic: bool,
}

impl Reader<'_> {
    pub(crate) fn value(&self, node: Node<'_>) -> Value {
        let mut piece = Piece::default();
        self.read(node, &mut piece, true);
        if piece.is_dynamic {
            return Value::Dynamic(self.text(node).to_owned());
        }
        match piece.is_pattern {
            true => Value::Pattern(piece.text),
            false => Value::Literal(piece.text),
        }
    }

    pub(crate) fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn read(&self, node: Node<'_>, piece: &mut Piece, first: bool) {
        match node.kind() {
            "word" | "number" | "variable_name" => self.bare(self.text(node), piece, first),
            "raw_string" => {
                let text = self.text(node);
                piece.text.push_str(text.get(1..text.len().saturating_sub(1)).unwrap_or_default());
            }
            "string" => self.quoted(node, piece),
            "concatenation" => self.joined(node, piece),
            "simple_expansion" => match (self.text(node), self.home) {
                ("$HOME", Some(home)) => piece.text.push_str(home),
                _ => piece.is_dynamic = true,
            },
            _ => piece.is_dynamic = true,
        }
    }

    /// Text without quotes: a backslash takes the next character as it is.
    fn bare(&self, text: &str, piece: &mut Piece, first: bool) {
        let mut text = text;
        if first && let Some(rest) = text.strip_prefix('~') {
            match self.home {
                Some(home) if rest.is_empty() || rest.starts_with('/') => {
                    piece.text.push_str(home);
                    text = rest;
                }
                // Somebody else's home, or a directory of the shell's own list.
                _ => piece.is_dynamic = true,
            }
        }
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => piece.text.extend(characters.next()),
                '*' | '?' | '[' => {
                    piece.is_pattern = true;
                    piece.text.push(character);
                }
                // Braces stand for several words; parentheses for code, in some shells.
                '{' | '}' | '(' | ')' => {
                    piece.is_dynamic = true;
                }
                other => piece.text.push(other),
            }
        }
    }

    fn quoted(&self, node: Node<'_>, piece: &mut Piece) {
        let mut cursor = node.walk();
        // A translated text, `$"…"`, may become another one.
        if self.text(node).starts_with('$') {
            piece.is_dynamic = true;
        }
        let mut end = node.start_byte() + 1;
        for child in node.named_children(&mut cursor) {
            piece.text.push_str(self.source.get(end..child.start_byte()).unwrap_or_default());
            end = child.end_byte();
            match child.kind() {
                "string_content" => unescape(self.text(child), &mut piece.text),
                _ => self.read(child, piece, false),
            }
        }
        let last = self.source.get(end..node.end_byte().saturating_sub(1)).unwrap_or_default();
        piece.text.push_str(last);
    }

    fn joined(&self, node: Node<'_>, piece: &mut Piece) {
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            // Something between the parts that the grammar did not name.
            piece.is_dynamic |= child.start_byte() != end;
            end = child.end_byte();
            self.read(child, piece, child.start_byte() == node.start_byte());
        }
    }
}

/// In double quotes a backslash stands for itself, but before these.
fn unescape(text: &str, out: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('$' | '`' | '"' | '\\')) => out.extend(characters.next()),
            _ => out.push(character),
        }
    }
}
