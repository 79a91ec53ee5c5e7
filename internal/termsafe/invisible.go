package termsafe

import "unicode"

// deceptive reports characters without a shape of their own that change how the text
// around them reads, or that are not seen at all. Unassigned ones that Unicode keeps for
// such are among them.
func deceptive(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, // soft hyphen, grapheme joiner
		r >= 0x200b && r <= 0x200f && r != joiner, // zero width, direction marks
		r >= 0x202a && r <= 0x202e,                // embeddings and overrides
		r >= 0x2060 && r <= 0x206f,                // word joiner, invisible operators, isolates, deprecated formats
		r == 0x061c, r == 0xfeff, r == 0x2028, r == 0x2029,
		r >= 0xfff0 && r <= 0xfffb,                                 // interlinear annotation
		r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a, // formats of shorthand and of music
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // fillers of Hangul
		r == 0x17b4, r == 0x17b5, // vowels of Khmer that are not written
		r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r < textSelector, // variants of a shape
		r >= 0xe0000 && r <= 0xe0fff: // tags, more variants
		return true
	}
	return false
}

const (
	joiner        = 0x200d // makes one emoji of several, and ligatures in some scripts
	textSelector  = 0xfe0e // the character before is to be text,
	emojiSelector = 0xfe0f // and here a picture
)

// shapeless reports characters without a shape that ordinary text has.
func shapeless(r rune) bool { return r == joiner || r == textSelector || r == emojiSelector }

// fits reports whether one of them stands where ordinary text has it. A row of them could
// hold any message, and so could letters with and without a selector.
func fits(r, before rune) bool {
	switch {
	case before == 0, before == joiner, unicode.IsSpace(before), unicode.IsControl(before):
		return false
	case r == joiner:
		return true
	}
	return !shapeless(before) && !unicode.IsLetter(before)
}
