// What can happen to a message, from `app/delivery/basics/steps.py`: what operators read, how it looks,
// its place among steps at the same time, and the stage of the delivery.
// <!-- made by docs.generate: console steps -->
export const STEPS = new Map([
    ["published",{"words":"published","mood":"","rank":0,"stage":null}],
    ["replayed",{"words":"replayed","mood":"","rank":1,"stage":null}],
    ["entered",{"words":"entered","mood":"","rank":2,"stage":null}],
    ["delayed",{"words":"delayed","mood":"","rank":3,"stage":null}],
    ["handed",{"words":"handed over","mood":"","rank":4,"stage":0}],
    ["redelivered",{"words":"redelivered","mood":"","rank":5,"stage":0}],
    ["written",{"words":"written","mood":"good","rank":15,"stage":0}],
    ["refused",{"words":"refused","mood":"bad","rank":7,"stage":1}],
    ["returned",{"words":"returned","mood":"warn","rank":8,"stage":1}],
    ["acked",{"words":"acknowledged","mood":"good","rank":15,"stage":1}],
    ["dead",{"words":"dead","mood":"bad","rank":15,"stage":2}],
    ["expired",{"words":"expired","mood":"warn","rank":15,"stage":2}],
    ["discarded",{"words":"discarded","mood":"warn","rank":15,"stage":2}],
    ["moved",{"words":"moved","mood":"","rank":15,"stage":null}],
    ["due",{"words":"due","mood":"","rank":15,"stage":null}],
]);
// <!-- end -->
