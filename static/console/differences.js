// The differences between two texts, line by line.
const MOST_LINES = 400;

/** The lines of both as `[sign, text]`: "-" means only in the first, "+" only in the second. */
export function differences(first, second) {
    const [a, b] = [lines(first), lines(second)];
    const common = lengths(a, b);
    const found = [];
    let [i, j] = [0, 0];
    while (i < a.length || j < b.length) {
        if (i < a.length && j < b.length && a[i] === b[j]) {
            found.push([" ", a[i]]);
            i += 1;
            j += 1;
        } else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) {
            found.push(["-", a[i++]]);
        } else {
            found.push(["+", b[j++]]);
        }
    }
    return found;
}

const lines = (value) => JSON.stringify(value, null, 2).split("\n").slice(0, MOST_LINES);

/** The length of the longest common subsequence, for each pair of starting lines. */
function lengths(a, b) {
    const table = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i -= 1) {
        for (let j = b.length - 1; j >= 0; j -= 1) {
            table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
        }
    }
    return table;
}
