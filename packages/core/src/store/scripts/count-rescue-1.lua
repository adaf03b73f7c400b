-- Counts how often the lost job of a request was put back. KEYS: record. Returns the count; 0: there is no record, and
-- counting would make one that never ends.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HINCRBY', KEYS[1], 'rescued', 1)
