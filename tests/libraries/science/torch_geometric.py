"""torch-geometric: layers of graphs train for a step, over a batch of graphs."""

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool


def use(device):
    graphs = [Data(x=torch.randn(n, 6), edge_index=torch.randint(n, (2, 3 * n))) for n in (7, 10)]
    batch = Batch.from_data_list(graphs).to(device)
    layers = torch.nn.ModuleList([GCNConv(6, 8), GATConv(8, 8, heads=2), SAGEConv(16, 4)]).to(
        device
    )
    x = batch.x
    for layer in layers:
        x = layer(x, batch.edge_index).relu()
    found = global_mean_pool(x, batch.batch)
    found.square().sum().backward()
    return {"found": found, "gradients": [one.grad for one in layers.parameters()]}
