function Shape(name) { this.name = name; }
Shape.prototype = { area: function () { return 0; }, describe: function () { return this.name + " of " + this.area(); } };
function Circle(r) { Shape.call(this, "circle"); this.r = r; }
Circle.prototype = Object.create(Shape.prototype); Circle.prototype.constructor = Circle;
Circle.prototype.area = function () { return Math.round(Math.PI * this.r * this.r); };
var shapes = [new Shape("nothing"), new Circle(2), new Circle(10)];
for (var i in shapes) print(shapes[i].describe(), shapes[i] instanceof Circle, shapes[i].hasOwnProperty("r"));
var o = {}; Object.defineProperty(o, "twice", { get: function () { return this.n * 2; }, set: function (v) { this.n = v / 2; }, enumerable: true });
o.twice = 30; print(o.n, o.twice, JSON.stringify(o), Object.keys(o));
try { throw new RangeError("too far"); } catch (e) { print(e.name, e.message); } finally { print("done"); }
print(Object.isFrozen(Object.freeze({ a: 1 })), delete o.n, "n" in o, [1, , 3].length);
print([3, 1, 2].sort(), ["b", "a"].reverse(), [1, 2, 3].some(function (x) { return x > 2; }), [1, 2].every(isFinite), [4, 5].lastIndexOf(5));
