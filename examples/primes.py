"""Prints the primes below its first argument (100 unless given)."""
import sys

limit = int(sys.argv[1]) if len(sys.argv) > 1 else 100
primes = [n for n in range(2, limit) if all(n % d for d in range(2, int(n**0.5) + 1))]
print(*primes)
print(len(primes), "primes below", limit)
