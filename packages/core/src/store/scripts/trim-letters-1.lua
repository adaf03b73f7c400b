-- Takes away dead letters beyond the limits. KEYS: list of them. ARGV: key tag, now, limits, how many at most.
return trim_letters(ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]))
