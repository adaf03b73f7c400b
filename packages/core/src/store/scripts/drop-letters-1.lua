-- Takes away dead letters. KEYS: list of them. ARGV: key tag, ids. Returns how many there were.
local dropped = 0
for i = 2, #ARGV do dropped = dropped + drop_letter(ARGV[1], ARGV[i]) end
return dropped
