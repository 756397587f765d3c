// What operators list and cancel, from `app/web/admin/listed.py`.
// <!-- made by docs.generate: console lists -->
export const LISTED = [
    {"name":"delayed","title":"Delayed","things":"messages that wait until they are due","explanation":"They were accepted, and are published when they are due.","columns":[{"name":"id","form":"message"},{"name":"due","form":"time"},{"name":"channel","form":"channel"},{"name":"sender","form":"text"},{"name":"bytes","form":"bytes"}]},
];
// <!-- end -->
