-- Bytes that the outcomes of a request take, without reading them.
-- KEYS: record. ARGV: key tag, id. Returns 0 where there is no record.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'nonce', 'n')
if not f[1] then return 0 end
local bytes = 0
for item = 0, tonumber(f[2]) - 1 do
  local size = redis.call('HSTRLEN', rec, 'o:' .. item)
  if size > 0 and size < 20 then
    local mark = redis.call('HGET', rec, 'o:' .. item)
    if string.sub(mark, 1, 4) == '\0\0\0\0' then
      size = redis.call('STRLEN', ARGV[1] .. ':o:' .. ARGV[2] .. ':' .. f[1] .. ':' .. item .. ':' .. string.sub(mark, 5))
    end
  end
  bytes = bytes + size
end
return bytes
