exec yes "a line of an endless flood"
