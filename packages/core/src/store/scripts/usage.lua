-- What has not ended, by partition ("p:model/class/lane") and by tenant ("t:name"): one hash for the shard, whose fields
-- hold "requests rows bytes ended rows-ended". The last two only rise, until the field goes with its last request: from
-- two readings of them a rate is told. One text for all, since reading and writing it is two commands for both fields.

-- A request counts in what its record says of itself: "rows bytes partition tenant"; a shadow copy has no tenant.
-- by: 1 when it comes, -1 when it ends. Returns the new text of each field it counts in, '' where nothing is left.
local function change_usage(key, use, by)
  local rows, bytes, partition, tenant = string.match(use or '', '^(%d+) (%d+) (%S+) ?(%S*)$')
  -- Of a build that did not count.
  if not rows then return {} end
  local fields = { 'p:' .. partition }
  if tenant ~= '' then fields[2] = 't:' .. tenant end
  local texts = redis.call('HMGET', key, unpack(fields))
  local set, gone = {}, {}
  for i, field in ipairs(fields) do
    local n, r, b, en, er = string.match(texts[i] or '0 0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    n = n + by
    if n <= 0 then
      gone[#gone + 1] = field
      texts[i] = ''
    else
      r, b = math.max(0, r + by * rows), math.max(0, b + by * bytes)
      if by < 0 then en, er = en + 1, er + rows end
      texts[i] = string.format('%d %.0f %.0f %.0f %.0f', n, r, b, en, er)
      set[#set + 1] = field
      set[#set + 1] = texts[i]
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  return texts
end
