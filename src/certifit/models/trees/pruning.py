"""Cost-complexity pruning: the subtrees that minimise impurity + alpha x number of leaves, for every alpha.

R(t) is the impurity of node t times its share of all weight. The weakest link of a tree is the node with the least

    (R(t) - sum of R over the leaves below t) / (number of leaves below t - 1),

which is the sum of the decreases below t over as many splits. It becomes a leaf, and so on to the root: the subtrees
are nested, and each minimises for all alpha from its own to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from certifit.data.columns import Array
from certifit.models.trees.state import TreeState

TIE = 1e-12  # relative: links that differ by less are cut together


@dataclass(frozen=True)
class PruningPath:
    """ccp_alphas: ascending, from 0. impurities: of the leaves of each subtree, weighted; n_leaves: how many."""

    ccp_alphas: Array
    impurities: Array
    n_leaves: Array


def pruning_path(tree: TreeState) -> PruningPath:
    """All subtrees that are best for some alpha, the largest first."""
    links = _Links(tree)
    alphas, impurities, n_leaves = [0.0], [links.impurity()], [tree.n_leaves]
    while (alpha := links.weakest()) is not None:
        links.cut(alpha)
        alphas.append(alpha)
        impurities.append(links.impurity())
        n_leaves.append(links.n_leaves())
    return PruningPath(np.maximum.accumulate(alphas), np.array(impurities), np.array(n_leaves))


def pruned(tree: TreeState, alpha: float) -> TreeState:
    """The smallest subtree that minimises impurity + alpha x number of leaves."""
    links = _Links(tree)
    while (weakest := links.weakest()) is not None and weakest <= alpha:
        links.cut(weakest)
    return tree.with_leaves(~np.array(links.is_split))


class _Links:
    """The decreases and the splits below every node of what is left of a tree; a heap finds the weakest link."""

    def __init__(self, tree: TreeState) -> None:
        self.left, self.parents = tree.left.tolist(), tree.parents.tolist()
        self.decrease, self.root_impurity = tree.decrease.tolist(), float(tree.impurity[0])
        self.is_split = [child > 0 for child in self.left]
        self.below = [0.0] * tree.n_nodes
        self.splits = [0] * tree.n_nodes
        for node in reversed(range(tree.n_nodes)):
            self._add_up(node)
        self.waiting = [(self._link(node), node) for node in range(tree.n_nodes) if self.is_split[node]]
        heapify(self.waiting)

    def weakest(self) -> float | None:
        """The least link; None where only the root is left."""
        while self.waiting:
            link, node = self.waiting[0]
            if self.is_split[node] and link == self._link(node):
                return link
            heappop(self.waiting)  # of a node that was cut, or whose link has changed
        return None

    def cut(self, alpha: float) -> None:
        """Make leaves of the nodes whose link is no more than alpha, but for rounding."""
        while (link := self.weakest()) is not None and link <= alpha * (1 + TIE):
            node = heappop(self.waiting)[1]
            self._make_leaf(node)
            while node > 0:
                node = self.parents[node]
                self._add_up(node)
                heappush(self.waiting, (self._link(node), node))

    def _make_leaf(self, top: int) -> None:
        open_nodes = [top]
        while open_nodes:
            node = open_nodes.pop()
            if self.is_split[node]:
                self.is_split[node] = False
                self._add_up(node)
                open_nodes += [self.left[node], self.left[node] + 1]

    def _add_up(self, node: int) -> None:
        """Sums of a node from those of its children."""
        if not self.is_split[node]:
            self.below[node], self.splits[node] = 0.0, 0
            return
        first, second = self.left[node], self.left[node] + 1
        self.below[node] = self.decrease[node] + self.below[first] + self.below[second]
        self.splits[node] = 1 + self.splits[first] + self.splits[second]

    def _link(self, node: int) -> float:
        return self.below[node] / self.splits[node]

    def impurity(self) -> float:
        """Of the leaves, weighted."""
        return max(self.root_impurity - self.below[0], 0.0)

    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.splits[0] + 1
