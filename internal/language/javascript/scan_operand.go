package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// begins tells whether a statement may begin at the next token.
func (l *lexer) begins() bool {
	t := l.last()
	if t == nil {
		return true
	}
	if r := l.top().role; r != block && r != function && r != funcExpr && r != arrow {
		return false
	}
	switch t.Kind {
	case lex.Punct:
		switch t.Text {
		case ";":
			return true
		case "{":
			return t.role != object && t.role != class && t.role != classExpr
		case "}":
			return t.role != object && t.role != insertion && (t.role != funcExpr && t.role != classExpr || l.line)
		case ")":
			return t.role == control || l.line
		case "]":
			return l.line
		case ":":
			return t.role == control
		case "++", "--":
			return l.line
		}
		return false
	case lex.Name:
		if !t.plain && (t.Text == "else" || t.Text == "do" || t.Text == "try" || t.Text == "finally") {
			return true
		}
		return l.line && l.operand()
	}
	return l.line
}

// operand tells whether the last token ends an operand, so that an operator follows.
func (l *lexer) operand() bool {
	t := l.last()
	if t == nil {
		return false
	}
	switch t.Kind {
	case lex.Name:
		if t.plain {
			return true
		}
		if t.Text == "of" {
			return l.top().role != control
		}
		return !isOperator(t.Text)
	case lex.Number:
		return true
	case lex.String:
		return t.role != head
	}
	switch t.Text {
	case ")":
		return t.role != control
	case "]":
		return true
	case "}":
		return t.role == object || t.role == funcExpr || t.role == classExpr
	case "++", "--":
		// Behind an operand it belongs to that.
		return t.role == tail
	}
	return false
}

// isOperator tells of a word that an operand follows it.
func isOperator(word string) bool {
	switch word {
	case "return", "typeof", "instanceof", "in", "new", "delete", "void", "throw", "case", "do", "else", "yield", "await", "extends", "default", "export":
		return true
	}
	return false
}
