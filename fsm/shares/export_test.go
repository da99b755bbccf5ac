package shares

// PromisesOf is how many promises are remembered of an entry.
func PromisesOf(b *Book, id ID) int { return len(b.table.Find(id).promises) }
