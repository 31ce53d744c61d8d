/* Stands for mcf: a primal network simplex on random transportation problems, with arcs in a large array that pricing walks through. */
#include "counter.h"

typedef struct Node Node;
typedef struct Arc Arc;
struct Arc {
    Node *from, *to;
    long cost, flow, capacity;
};
struct Node {
    Node *parent, *child, *next, *before;
    Arc *arc;
    long potential, supply;
    int depth;
};

#define NODES_MAX 4000
#define ARCS_MAX 64000
static Node nodes[NODES_MAX + 1];
static Arc arcs[ARCS_MAX + NODES_MAX];
static int node_count, drawn;
static int arc_count, scan;
static long pivots;

static __attribute__((noinline)) void hang(Node *node, Node *parent, Arc *arc)
{
    COUNT(10);
    node->parent = parent;
    node->arc = arc;
    node->before = 0;
    node->next = parent->child;
    if (parent->child)
        parent->child->before = node;
    parent->child = node;
}

static __attribute__((noinline)) void cut(Node *node)
{
    COUNT(8);
    if (node->before)
        node->before->next = node->next;
    else
        node->parent->child = node->next;
    if (node->next)
        node->next->before = node->before;
}

static __attribute__((noinline)) void refresh(Node *top)
{
    Node *node = top;
    COUNT(3);
    for (;;) {
        Arc *arc = node->arc;
        COUNT(14);
        node->depth = node->parent->depth + 1;
        node->potential = node->parent->potential + (arc->to == node ? arc->cost : -arc->cost);
        if (node->child) {
            node = node->child;
            continue;
        }
        while (node != top && !node->next)
            node = node->parent;
        if (node == top)
            return;
        node = node->next;
    }
}

static __attribute__((noinline)) long reduced(const Arc *arc)
{
    COUNT(15);
    return arc->cost + arc->from->potential - arc->to->potential;
}

static __attribute__((noinline)) Arc *price(void)
{
    Arc *best = 0;
    long worst = 0;
    COUNT(7);
    for (int looked = 0; looked < arc_count; looked++) {
        Arc *arc = &arcs[scan];
        long gain = reduced(arc);
        scan = scan + 1 == arc_count ? 0 : scan + 1;
        if (gain < 0 ? arc->flow == arc->capacity : arc->flow == 0)
            gain = 0;
        if (gain > 0)
            gain = -gain;
        if (gain < worst) {
            COUNT(11);
            worst = gain, best = arc;
        }
        if (best && looked % 300 == 299)
            return best;
    }
    COUNT(0);
    return best;
}

static __attribute__((noinline)) Node *meet(Node *a, Node *b)
{
    COUNT(4);
    while (a != b)
        if (a->depth >= b->depth)
            a = a->parent;
        else
            b = b->parent;
    return a;
}

/* How much more can go from the node's side towards the root (up) or the other way. */
static __attribute__((noinline)) long room(const Node *node, int up)
{
    const Arc *arc = node->arc;
    COUNT(13);
    return (arc->from == node) == up ? arc->capacity - arc->flow : arc->flow;
}

static __attribute__((noinline)) void push(Node *node, int up, long amount)
{
    Arc *arc = node->arc;
    COUNT(12);
    arc->flow += (arc->from == node) == up ? amount : -amount;
}

static __attribute__((noinline)) void pivot(Arc *arc)
{
    int forward = arc->flow == 0;
    Node *tail = forward ? arc->from : arc->to, *head = forward ? arc->to : arc->from;
    Node *top = meet(tail, head), *leaving = 0, *node, *inner, *outer;
    long amount = arc->capacity;
    int side = 0;
    COUNT(5);
    for (node = head; node != top; node = node->parent)
        if (room(node, 1) < amount)
            amount = room(node, 1), leaving = node, side = 1;
    for (node = tail; node != top; node = node->parent)
        if (room(node, 0) <= amount)
            amount = room(node, 0), leaving = node, side = 2;
    arc->flow += forward ? amount : -amount;
    for (node = head; node != top; node = node->parent)
        push(node, 1, amount);
    for (node = tail; node != top; node = node->parent)
        push(node, 0, amount);
    pivots++;
    if (!leaving) {
        COUNT(2);
        return;
    }
    /* The part of the tree below the leaving arc is turned round and hung under the entering one. */
    inner = side == 1 ? head : tail;
    outer = side == 1 ? tail : head;
    for (Arc *enter = arc, *old; ; enter = old) {
        Node *parent = inner->parent;
        old = inner->arc;
        COUNT(9);
        cut(inner);
        hang(inner, outer, enter);
        if (inner == leaving)
            break;
        outer = inner;
        inner = parent;
    }
    refresh(side == 1 ? head : tail);
}

static __attribute__((noinline)) void build(void)
{
    Node *root = &nodes[NODES_MAX];
    unsigned half = (unsigned)node_count / 2;
    COUNT(1);
    memset(nodes, 0, sizeof nodes);
    arc_count = 0;
    for (int i = 0; i < node_count; i++)
        nodes[i].supply = i < node_count / 2 ? 20 : -20;
    for (int i = 0; i < drawn; i++)
        arcs[arc_count++] = (Arc){&nodes[random_below(half)], &nodes[half + random_below(half)],
                                  1 + (long)random_below(5000), 0, 1 + (long)random_below(12)};
    for (int i = 0; i < node_count; i++) {
        Node *node = &nodes[i];
        Arc *arc = &arcs[arc_count++];
        *arc = node->supply > 0 ? (Arc){node, root, 1000000, node->supply, 1000000}
                                : (Arc){root, node, 1000000, -node->supply, 1000000};
        hang(node, root, arc);
    }
    for (int i = 0; i < node_count; i++)
        refresh(&nodes[i]);
}

int main(int argc, char **argv)
{
    long thousands = size_argument(argc, argv, 24), cost = 0;
    drawn = (int)(thousands < 1 ? 1 : thousands > 64 ? 64 : thousands) * 1000;
    node_count = drawn / 16;
    for (int problem = 0; problem < 2; problem++) {
        Arc *arc;
        build();
        while ((arc = price())) {
            COUNT(6);
            pivot(arc);
        }
        for (int i = 0; i < arc_count; i++)
            cost += arcs[i].cost * arcs[i].flow;
    }
    printf("%ld %ld\n", cost, pivots);
    return 0;
}
