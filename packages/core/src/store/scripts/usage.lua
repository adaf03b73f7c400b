-- What has not ended, by partition ("p:model/class/lane") and by tenant ("t:name"): one hash for the shard, whose fields
-- hold "requests rows bytes ended rows-ended". The last two only rise, until the field goes with its last request: from
-- two readings of them a rate is told. One text for all, since reading and writing it is two commands for both fields.

-- Adds requests (n: below 0 where they end), their rows and bytes to each field. Returns the new texts, '' where nothing
-- is left.
local function add_usage(key, fields, n, rows, bytes)
  local texts = redis.call('HMGET', key, unpack(fields))
  local set, gone = {}, {}
  for i, field in ipairs(fields) do
    local had, r, b, ended, rows_ended = string.match(texts[i] or '0 0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    local now = had + n
    if now <= 0 then
      gone[#gone + 1] = field
      texts[i] = ''
    else
      r, b = math.max(0, r + rows), math.max(0, b + bytes)
      if n < 0 then ended, rows_ended = ended - n, rows_ended - rows end
      texts[i] = string.format('%d %.0f %.0f %.0f %.0f', now, r, b, ended, rows_ended)
      set[#set + 1] = field
      set[#set + 1] = texts[i]
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  return texts
end

-- A request counts in what its record says of itself: "rows bytes partition tenant"; a shadow copy has no tenant.
-- by: 1 when it comes, -1 when it ends. Returns the new texts of its partition and of its tenant.
local function change_usage(key, use, by)
  local rows, bytes, partition, tenant = string.match(use or '', '^(%d+) (%d+) (%S+) ?(%S*)$')
  -- Of a build that did not count.
  if not rows then return {} end
  local fields = { 'p:' .. partition }
  if tenant ~= '' then fields[2] = 't:' .. tenant end
  return add_usage(key, fields, by, by * rows, by * bytes)
end

-- Of a script that ends many: what has ended is added up, and counted once by settle_usage(). nil: counted at once.
local ended_usage

local function end_usage(key, use)
  if not ended_usage then
    change_usage(key, use, -1)
    return
  end
  local rows, bytes, whose = string.match(use or '', '^(%d+) (%d+) (.+)$')
  if not rows then return end
  local sum = ended_usage[whose] or { 0, 0, 0 }
  ended_usage[whose] = sum
  sum[1], sum[2], sum[3] = sum[1] + 1, sum[2] + rows, sum[3] + bytes
end

local function settle_usage(key)
  for whose, sum in pairs(ended_usage) do
    local partition, tenant = string.match(whose, '^(%S+) ?(%S*)$')
    local fields = { 'p:' .. partition }
    if tenant ~= '' then fields[2] = 't:' .. tenant end
    add_usage(key, fields, -sum[1], -sum[2], -sum[3])
  end
end
