// What scenarios use of Node's module, in a page. They compare JSON.
export default {
    deepEqual(found, expected) {
        const [is, should] = [found, expected].map((value) => JSON.stringify(value));
        if (is !== should) {
            throw new Error(`${is} is not ${should}`);
        }
    },
};
