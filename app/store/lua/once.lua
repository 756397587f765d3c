-- For scripts that have nothing to tell a second time.
if is_repeat then
    return before
end
