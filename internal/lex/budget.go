package lex

// A Budget bounds how much text is made of constants: each is short, and may be named often.
type Budget int

// BudgetOf is the one for code of so many bytes.
func BudgetOf(size int) Budget { return Budget(4*size + 4096) }

// Take tells whether there are n bytes left, and takes them.
func (b *Budget) Take(n int) bool {
	if int(*b) < n {
		return false
	}
	*b -= Budget(n)
	return true
}
