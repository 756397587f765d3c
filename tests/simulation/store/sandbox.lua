-- What scripts find in the store: `redis.call` and its relatives. A name that they may use in Valkey
-- and that is missing here is an error.
-- Given   functions of the host: to run a command, to hash, to make a list, an error and a status
-- Returns a function that compiles a script, and one that runs it
local run_command, text_of, digest, make_list, make_error, make_status = ...
local loadstring, pcall_any, xpcall, error, type = loadstring, pcall, xpcall, error, type
local tostring = tostring
local rawset, unpack, rawget, setmetatable = rawset, unpack, rawget, setmetatable
local getinfo, sub, find, math = debug.getinfo, string.sub, string.find, math

local function error_of(text)
    if sub(text, 1, 1) == '-' then
        text = sub(text, 2)
    end
    if not find(text, ' ', 1, true) then
        text = 'ERR ' .. text
    end
    return { err = text }
end

redis = {
    sha1hex = function(text)
        return digest(text)
    end,
    error_reply = error_of,
    status_reply = function(text)
        return { ok = text }
    end,
    -- What only the memory of this server must have is replicated here as well.
    set_repl = function() end,
    REPL_NONE = 0,
    call = run_command,
    pcall = function(...)
        local is_done, reply = pcall_any(run_command, ...)
        if is_done then
            return reply
        end
        return { err = text_of(reply) }
    end,
}
server = redis

-- Returns the text of an error, as in Valkey.
local function results(is_done, first, ...)
    if not is_done and type(first) == 'userdata' then
        return false, text_of(first)
    elseif not is_done and type(first) == 'table' and first.err then
        return false, first.err
    end
    return is_done, first, ...
end

function pcall(...)
    return results(pcall_any(...))
end

-- These would make a run differ from the next one, or reach the host.
for _, name in ipairs({
    'python', 'io', 'os', 'package', 'require', 'module', 'debug', 'dofile', 'loadfile', 'load',
    'print', 'newproxy', 'collectgarbage', 'getfenv', 'setfenv', 'gcinfo',
}) do
    _G[name] = nil
end
math.random, math.randomseed = nil, nil

setmetatable(_G, {
    __index = function(_, name)
        -- The host looks for it after an error.
        if name == 'debug' then
            return nil
        end
        error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
    end,
    __newindex = function()
        error('Attempt to modify a readonly table', 2)
    end,
})

-- Adds to an error where it came from.
local function located(problem)
    if type(problem) == 'userdata' then
        problem = { err = text_of(problem) }
    end
    if type(problem) ~= 'table' then
        problem = { err = 'ERR ' .. tostring(problem) }
    end
    local level = 2
    local at = getinfo(level, 'Sl')
    while at and (at.what == 'C' or at.source == '=sandbox') do
        level = level + 1
        at = getinfo(level, 'Sl')
    end
    local where = at and ' script: on ' .. at.source .. ':' .. at.currentline .. '.' or ''
    return { err = tostring(problem.err) .. where }
end

-- Turns what a script returns into a reply.
local function reply_of(value)
    if type(value) ~= 'table' then
        return value
    end
    if value.err then
        return make_error(value.err)
    elseif value.ok then
        return make_status(value.ok)
    end
    for _, name in ipairs({ 'double', 'map', 'set', 'big_number', 'verbatim_string' }) do
        if rawget(value, name) then
            error('no reply of this kind is known here: ' .. name)
        end
    end
    local replies, count = {}, 0
    while value[count + 1] ~= nil do
        count = count + 1
        replies[count] = reply_of(value[count])
    end
    return make_list(unpack(replies, 1, count))
end

local function compile(source)
    return loadstring(source, '@user_script')
end

local function run(chunk, keys, argv)
    rawset(_G, 'KEYS', keys)
    rawset(_G, 'ARGV', argv)
    local _, value = xpcall(chunk, located)
    return reply_of(value)
end

return compile, run
